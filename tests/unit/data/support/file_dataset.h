// A data set of samples of given sizes, one after another in a file, encoded as nothing that
// exists: for what reads bytes and does not look into them.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/prng.h"
#include "data/base/read_at.h"
#include "data/dataset/dataset.h"
#include "data/image/image_decoder.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {

class FileDataset final : public Dataset {
 public:
  explicit FileDataset(const std::vector<uint64_t>& sizes) : path_(dir_.path("data")) {
    uint64_t bytes = 0;
    for (const uint64_t size : sizes) {
      places_.emplace_back(bytes, size);
      bytes += size;
    }
    content_.resize(bytes + sizeof(uint64_t));
    Prng prng(5);
    for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
      const uint64_t word = prng.next();
      std::memcpy(content_.data() + at, &word, sizeof word);
    }
    write_file(path_, content_);
    struct stat info {};
    EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    modified_ns_ = data::modified_ns(info);
  }

  uint64_t samples() const override { return places_.size(); }
  SampleShape shape() const override { return {1, 1, 1}; }
  uint32_t classes() const override { return 1; }
  const std::string& format() const override { return path_; }
  const std::string& fingerprint() const override { return path_; }
  const std::vector<ChannelStatistics>& statistics() const override { return statistics_; }
  const std::vector<std::string>& files() const override { return files_; }
  const WantedImage* encoded_form() const override { return &wanted_; }
  const uint8_t* sample(uint64_t) const override { return nullptr; }
  uint32_t label(uint64_t) const override { return 0; }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }
  std::optional<FileExtent> extent(uint64_t i) const override {
    return FileExtent{-1,
                      i == gone ? path_ + ".gone" : path_,
                      places_[i].first,
                      places_[i].second,
                      content_.size(),
                      modified_ns_};
  }

  std::string bytes_of(uint64_t i) const {
    return content_.substr(places_[i].first, places_[i].second);
  }
  uint64_t gone = ~uint64_t{0};  // the sample whose file cannot be found

 private:
  TemporaryDirectory dir_;
  const std::string path_;
  std::string content_;
  std::vector<std::pair<uint64_t, uint64_t>> places_;
  int64_t modified_ns_ = 0;
  WantedImage wanted_;
  std::vector<ChannelStatistics> statistics_;
  std::vector<std::string> files_;
};

}  // namespace lockstep::data
