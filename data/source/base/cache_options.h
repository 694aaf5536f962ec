// How Lockstep keeps far data near. Thread-safety: values.
#pragma once

#include <cstdint>

#include "comm/base/byte_units.h"

namespace lockstep::source {

enum class CachePolicy {
  kPin,   // chunks stay; what does not fit is fetched each time
  kLru,   // the chunk used longest ago makes room
  kFifo,  // the oldest chunk makes room
};

struct CacheOptions {
  bool covers_paths = false;  // also data at local paths, for slow mounts
  CachePolicy policy = CachePolicy::kPin;
  uint64_t limit_bytes = 0;      // of all runs with this cache directory; 0: no limit but the disk
  double keep_free_share = 0.1;  // of the disk: below it nothing more is kept
  uint64_t keep_free_bytes = kGib;  // instead, where this is less and there is a limit
  uint64_t memory_bytes = 256 * kMib;
  uint64_t chunk_bytes = 4 * kMib;
  uint32_t requests = 8;  // at once
  uint32_t stall_s = 15;  // a request fails after so long without data
  uint32_t attempts = 5;  // of a request, until reading fails
};

}  // namespace lockstep::source
