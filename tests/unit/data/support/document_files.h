// Documents in files of a test's own, and what a data set makes of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/labels.h"
#include "data/dataset/dataset.h"
#include "data/open/open_dataset.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {

using Tokens = std::vector<int64_t>;
inline constexpr int64_t kNoLabel = kIgnoredLabel;

template <typename T>
std::string stored(const Tokens& tokens) {
  std::vector<T> as(tokens.begin(), tokens.end());
  return {reinterpret_cast<const char*>(as.data()), as.size() * sizeof(T)};
}

inline std::string number(uint64_t value, size_t bytes) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

// PREFIX.idx of Megatron-LM, uint16: sequences, and where documents begin among them.
inline std::string index_of(const std::vector<uint64_t>& sizes,
                            const std::vector<uint64_t>& firsts) {
  std::string out = std::string("MMIDIDX\0\0", 9) + number(1, 8) + number(8, 1) +
                    number(sizes.size(), 8) + number(firsts.size(), 8);
  for (const uint64_t size : sizes) out += number(size, 4);
  uint64_t at = 0;
  for (const uint64_t size : sizes) out += number(std::exchange(at, at + 2 * size), 8);
  for (const uint64_t first : firsts) out += number(first, 8);
  return out;
}

struct Sample {
  Tokens input;
  Tokens positions;
  Tokens labels;
  bool operator==(const Sample&) const = default;
  bool operator<(const Sample& other) const { return labels < other.labels; }
};

inline Sample sample_of(const Dataset& dataset, uint64_t i) {
  const SampleShape shape = dataset.shape();
  Tokens input(shape.elements(), 77);
  Sample sample;
  sample.labels.resize(shape.labels(), 77);
  const auto [from, number] = dataset.as<Sequences>().value().at(i);
  const int64_t largest = from.make_sequence(number, input.data(), sample.labels.data());
  sample.input.assign(input.begin(), input.begin() + shape.tokens);
  sample.positions.assign(input.begin() + shape.tokens, input.end());
  EXPECT_EQ(largest, std::max(*std::max_element(sample.input.begin(), sample.input.end()),
                              *std::max_element(sample.labels.begin(), sample.labels.end())));
  const auto counted = std::count_if(sample.labels.begin(), sample.labels.end(),
                                     [](int64_t label) { return label != kNoLabel; });
  EXPECT_EQ(from.counted_labels(number), static_cast<uint64_t>(counted));
  EXPECT_FALSE(dataset.extent(i).has_value());
  EXPECT_TRUE(dataset.unchanged(std::span(&i, 1)).is_ok());
  return sample;
}

inline std::vector<Sample> all_of(const Dataset& dataset) {
  std::vector<Sample> all;
  for (uint64_t i = 0; i < dataset.samples(); ++i) all.push_back(sample_of(dataset, i));
  return all;
}

class DocumentFiles : public testing::Test {
 protected:
  static SampleCut cut(Documents documents, std::optional<uint64_t> end = std::nullopt,
                       uint32_t block = 4) {
    SampleCut cut{.block = block};
    cut.documents = documents;
    cut.document_end = end;
    return cut;
  }
  Result<std::unique_ptr<Dataset>> open(const SampleCut& wanted, const std::string& name = "d",
                                        const std::string& format = "auto") {
    const ProgressFn progress = [this](const std::string& what, uint64_t, uint64_t) {
      if (what.starts_with("finding documents ")) ++looks_;
    };
    return open_dataset(spec_of(dir_.path(name), format), Split::kTrain, dir_.path("cache"),
                        progress, wanted);
  }
  std::string put(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(dir_.path(name)).parent_path());
    write_file(dir_.path(name), content);
    return name;
  }
  // The error of documents that cannot be opened.
  Status failure(const SampleCut& wanted, const std::string& name = "d") {
    return open(wanted, name).status();
  }
  // Each document's labels, one after another.
  std::vector<Tokens> labels(const SampleCut& wanted, const std::string& name = "d") {
    const auto dataset = open(wanted, name);
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    std::vector<Tokens> out;
    if (!dataset.is_ok()) return out;
    for (const Sample& sample : all_of(**dataset)) {
      out.push_back(sample.labels);
      while (out.back().back() == kNoLabel) out.back().pop_back();
    }
    return out;
  }

  TemporaryDirectory dir_;
  int looks_ = 0;
};

}  // namespace lockstep::data
