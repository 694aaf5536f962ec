#include "worker/engine/step_memory.h"

#include <malloc.h>

#include <limits>

#include "comm/base/byte_units.h"

namespace lockstep {

void keep_freed_memory() {
  constexpr int kMmapThresholdBytes = 32 * kMib;  // the most that glibc takes
  constexpr int kTrimThresholdBytes = 512 * kMib;
  ::mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
  ::mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes);
}

void keep_all_freed_memory() {
  keep_freed_memory();
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace lockstep
