#include "data/base/change_mark.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <string_view>

#include "comm/base/hash.h"

namespace lockstep::data {
namespace {

template <size_t n>
uint64_t half(const uint64_t (&values)[n]) {
  return xxh3_64({reinterpret_cast<const char*>(values), sizeof values}) & 0xffff'ffffU;
}

bool leads_to(const std::string& path, const struct stat& file) {
  struct stat there {};
  return ::stat(path.c_str(), &there) == 0 && there.st_dev == file.st_dev &&
         there.st_ino == file.st_ino;
}

}  // namespace

// Above: what a write changes. Below: what else changes the time of an inode, and shows.
uint64_t change_mark(const struct stat& info) {
  const uint64_t written[] = {static_cast<uint64_t>(info.st_ctim.tv_sec),
                              static_cast<uint64_t>(info.st_ctim.tv_nsec), info.st_ino};
  const uint64_t other[] = {info.st_nlink, info.st_mode, info.st_uid, info.st_gid};
  return ((half(written) << 32 | half(other)) & ~kTouchedMark) | 1;
}

uint64_t content_mark(std::span<const uint8_t> content) {
  return xxh3_64({reinterpret_cast<const char*>(content.data()), content.size()}) | 1;
}

bool has_change_marks(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) != 0 || system.f_type != FUSE_SUPER_MAGIC;
}

bool is_rewritten(int fd, const std::string& path, const struct stat& now, uint64_t then) {
  const uint64_t mark = change_mark(now);
  then &= ~kTouchedMark;
  if (mark == then || static_cast<uint32_t>(mark) != static_cast<uint32_t>(then)) return false;
  return leads_to(path, now) && has_change_marks(fd);
}

}  // namespace lockstep::data
