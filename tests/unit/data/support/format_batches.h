// The batches that a loader makes of a data set of any format, as values that can be compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"
#include "data/dataset/samples.h"
#include "data/loader/loader.h"
#include "data/open/open_dataset.h"
#include "data/prefetch/prefetch_policy.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/bpe_samples.h"
#include "tests/unit/data/support/every_format.h"

namespace lockstep::data {

struct SeenBatch {
  std::string inputs;  // as bytes, as are the labels
  std::string labels;
  uint64_t digest = 0;
  bool operator==(const SeenBatch&) const = default;
};

struct SeenBatches {
  std::map<std::pair<Step, uint32_t>, SeenBatch> by_slot;  // of its step
  std::string error;
  bool operator==(const SeenBatches&) const = default;
};

class BatchesOfAFormat : public testing::TestWithParam<std::string> {
 protected:
  static constexpr uint32_t kSlots = 3;

  void SetUp() override {
    const Format& format = every_format_by_name().at(GetParam());
    std::filesystem::create_directory(dir_.path("data"));
    format.put(dir_.path("data"));
    SampleCut cut = format.cut;
    if (format.has_tokenizer) {
      std::filesystem::create_directory(dir_.path("tokenizer"));
      write_file(dir_.path("tokenizer/tokenizer.json"), bpe_sample("tokenizer.json"));
      cut.tokenizer = dir_.path("tokenizer");
    }
    auto dataset = open_dataset(spec_of(dir_.path("data"), format.name), Split::kTrain,
                                dir_.path("cache"), {}, cut);
    ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
    dataset_ = std::move(*dataset);
  }

  // Two epochs of all slots, several steps each.
  LoaderOptions options(uint32_t slots = kSlots) const {
    LoaderOptions options;
    const uint64_t samples = dataset_->samples();
    options.shape = {samples, std::clamp<uint64_t>(samples / 3, 1, 7), slots};
    options.order = {3, dataset_->fingerprint(), samples};
    options.end_step = 2 * steps_per_epoch(options.shape);
    options.slots = {0, slots};
    options.form = ImageForm::kStored;
    options.transforms = {"flip", "normalize"};
    if (dataset_->is<EncodedImages>())
      options.transforms.insert(options.transforms.begin(), "random_resized_crop=16");
    if (dataset_->shape().is_row) options.transforms = {"normalize"};
    if (dataset_->shape().is_sequence()) options.transforms.clear();
    return options;
  }

  SeenBatches read(const LoaderOptions& options) const {
    SeenBatches seen;
    const auto loader = Loader::start(*dataset_, options);
    if (!loader.is_ok()) return {{}, loader.status().message()};
    while (true) {
      const auto next = (*loader)->next();
      if (!next.is_ok()) seen.error = next.status().message();
      if (!next.is_ok() || *next == nullptr) return seen;
      const Batch& b = **next;
      const size_t element = b.stored != nullptr     ? sizeof(uint8_t)
                             : b.shape.is_sequence() ? sizeof(int64_t)
                                                     : sizeof(float);
      seen.by_slot[{b.step, b.slot}] = {
          {static_cast<const char*>(b.inputs()), b.samples * b.shape.elements() * element},
          {reinterpret_cast<const char*>(b.labels), b.samples * b.shape.labels() * sizeof(int64_t)},
          b.digest};
    }
  }

  // "auto" of a kernel that has all in memory, "auto, cold" of one that reads everything.
  static PrefetchPolicy reading_of(const std::string& reader, uint64_t mib) {
    wire::DataSpec data;
    data.set_reader(reader.substr(0, reader.find(',')));
    data.set_read_ahead_mb(mib);
    return {data, [](const std::string&) {},
            [blocks = uint64_t{0}, is_cold = reader == "auto, cold"]() mutable {
              return blocks += is_cold ? 1'000'000 : 0;
            }};
  }

  TemporaryDirectory dir_;
  std::unique_ptr<Dataset> dataset_;
};

inline constexpr const char* kReaders[] = {"auto", "auto, cold", "mmap", "pread"};

}  // namespace lockstep::data
