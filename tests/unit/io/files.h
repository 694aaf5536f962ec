// Files to read, and extents of them.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "comm/base/prng.h"
#include "data/base/modified_ns.h"
#include "data/io/file_extent.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {

class FilesToRead : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return temporary_.path(name); }

  void write(const std::string& name, const std::string& content) const {
    write_file(path(name), content);
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
  TemporaryDirectory temporary_;
};

}  // namespace lockstep::data
