// Opens shards that are compressed as a whole, and looks at their copies.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/open/open_dataset.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/packed_files.h"
#include "tests/unit/data/support/samples_of.h"
#include "tests/unit/data/support/shard_checks.h"

namespace lockstep::data {

inline constexpr ImageFrame kPackedFrame{CropKind::kRandomResized, 4, 0};

class PackedFiles : public testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> open(const std::string& path, Split split = Split::kTrain) {
    return open_dataset(spec_of(path), split, cache_, {}, {.frame = kPackedFrame});
  }
  std::string failure(const std::string& path) {
    const auto dataset = open(path);
    if (dataset.is_ok()) return "no failure";
    EXPECT_EQ(dataset.status().code(), Code::kBadData) << dataset.status().message();
    return dataset.status().message();
  }
  std::vector<SeenSample> samples(const std::string& path) {
    const auto dataset = open(path);
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    std::vector<SeenSample> seen;
    for (uint64_t i = 0; dataset.is_ok() && i < (*dataset)->samples(); ++i) {
      std::vector<uint8_t> bytes;
      EXPECT_TRUE(read_encoded(**dataset, i, bytes).is_ok());
      seen.push_back({{bytes.begin(), bytes.end()}, label_of(**dataset, i)});
    }
    return seen;
  }
  std::string fingerprint(const std::string& path) {
    const auto dataset = open(path);
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    return dataset.is_ok() ? (*dataset)->fingerprint() : "none";
  }
  // Files of the cache that are copies of shards, or begin to be: their numbers by their names.
  std::map<std::string, ino_t> copies() const {
    std::map<std::string, ino_t> found;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator it(cache_, error), end; !error && it != end;
         ++it) {
      struct stat info {};
      const std::string path = it->path().string();
      const bool is_file = ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
      if (is_file && path.find("/shards.") < path.rfind('/'))
        found[it->path().filename().string()] = info.st_ino;
    }
    return found;
  }

  std::filesystem::path copy_of(const std::string& name) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_))
      if (entry.path().filename() == name) return entry.path();
    return {};
  }

  TemporaryDirectory dir_;
  const std::string cache_ = dir_.path("cache");
};

}  // namespace lockstep::data
