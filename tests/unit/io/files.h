// Files to read, and extents of them.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "comm/base/prng.h"
#include "data/base/read_at.h"
#include "data/io/file_extent.h"

namespace lockstep::data {

class FilesToRead : public testing::Test {
 protected:
  FilesToRead() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-io-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~FilesToRead() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << content;
  }

  static std::string some_bytes(size_t bytes, uint64_t seed = 1) {
    std::string content(bytes, '\0');
    Prng prng(seed);
    for (char& byte : content) byte = static_cast<char>(prng.below(256));
    return content;
  }

  // As the file is now; opened for the read, or `fd`.
  FileExtent extent(const std::string& name, uint64_t offset, uint64_t bytes, int fd = -1) const {
    struct stat info {};
    EXPECT_EQ(::stat(path(name).c_str(), &info), 0);
    return {fd, path(name), offset, bytes, static_cast<uint64_t>(info.st_size), modified_ns(info)};
  }

 private:
  std::string directory_;
};

}  // namespace lockstep::data
