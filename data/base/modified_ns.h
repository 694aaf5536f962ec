// A file's time of change.
//
// Thread-safety: a free function.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace lockstep::data {

inline int64_t modified_ns(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace lockstep::data
