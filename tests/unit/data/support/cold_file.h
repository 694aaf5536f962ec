// Files that are out of the system's memory, where it lets a test have that.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "comm/base/descriptors.h"
#include "data/base/modified_ns.h"
#include "data/io/file_extent.h"
#include "data/io/page_cache.h"

namespace lockstep::data {

// False on file systems that lie in memory.
inline bool put_out_of_memory(const std::string& path) {
  const Descriptor fd(open_to_read(path));
  struct stat info {};
  EXPECT_EQ(::fstat(fd.get(), &info), 0);
  EXPECT_EQ(::fsync(fd.get()), 0);
  EXPECT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  const auto bytes = static_cast<uint64_t>(info.st_size);
  return !begins_in_cache({fd.get(), path, 0, bytes, bytes, modified_ns(info)});
}

}  // namespace lockstep::data
