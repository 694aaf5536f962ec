#include "worker/engine/core/step_memory.h"

#include <malloc.h>

namespace lockstep {

void keep_freed_memory() {
  constexpr int kMmapThresholdBytes = 32 * 1024 * 1024;  // the most that glibc takes
  constexpr int kTrimThresholdBytes = 512 * 1024 * 1024;
  ::mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
  ::mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes);
}

}  // namespace lockstep
