// A data set of samples of given sizes, one after another in a file, encoded as nothing that
// exists: for code that reads bytes and does not look into them.
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
#include "data/base/modified_ns.h"
#include "data/dataset/dataset.h"
#include "data/image/image_decoder.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {

class FileSamples final : public EncodedImages {
 public:
  explicit FileSamples(const std::vector<uint64_t>& sizes) : path_(dir_.path("data")) {
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

  const WantedImage& wanted() const override { return wanted_; }
  Status read_encoded(uint64_t, std::vector<uint8_t>&) const override { return Status::ok(); }
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
};

class FileDataset {
 public:
  explicit FileDataset(const std::vector<uint64_t>& sizes)
      : source_(std::make_shared<FileSamples>(sizes)),
        dataset_({.samples = sizes.size(),
                  .shape = {1, 1, 1},
                  .classes = 1,
                  .format = "files",
                  .fingerprint = "files"},
                 source_) {}

  const Dataset& operator*() const { return dataset_; }
  const Dataset* operator->() const { return &dataset_; }
  std::string bytes_of(uint64_t i) const { return source_->bytes_of(i); }
  void lose(uint64_t i) { source_->gone = i; }  // its file cannot be found

 private:
  const std::shared_ptr<FileSamples> source_;
  const Dataset dataset_;
};

}  // namespace lockstep::data
