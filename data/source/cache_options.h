// How data that are far away are kept near. Thread-safety: values.
#pragma once

#include <cstdint>

namespace lockstep::source {

enum class CachePolicy {
  kPin,   // what is in stays; what does not fit is fetched each time
  kLru,   // what was used longest ago makes room
  kFifo,  // what came first makes room
};

struct CacheOptions {
  bool covers_paths = false;  // local paths too, which lie on a slow mount
  CachePolicy policy = CachePolicy::kPin;
  uint64_t limit_bytes = 0;      // of all runs with this cache directory; 0: no limit but the disk
  double keep_free_share = 0.1;  // of the disk: no more is kept when less than this is free
  uint64_t memory_bytes = uint64_t{256} << 20;
  uint64_t chunk_bytes = uint64_t{4} << 20;
  uint32_t requests = 8;  // at once
  uint32_t stall_s = 15;  // without a sign of life, then a request has failed
  uint32_t attempts = 5;  // of a request, until reading fails
};

}  // namespace lockstep::source
