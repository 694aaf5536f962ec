#include "data/doctor/machine_limits.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/base/byte_units.h"
#include "comm/base/clock.h"

namespace lockstep::doctor {

double memory_copy_rate() {
  constexpr size_t kBytes = 64 * kMib;  // more than caches hold
  constexpr int kAttempts = 4;          // the first also gets the memory
  const SystemClock clock;
  std::vector<uint8_t> from(kBytes, 1);
  std::vector<uint8_t> to(kBytes);
  double best = 0;
  for (int i = 0; i < kAttempts; ++i) {
    const int64_t begin_ns = clock.monotonic_ns();
    std::memcpy(to.data(), from.data(), kBytes);
    const int64_t end_ns = clock.monotonic_ns();
    from[0] = to[kBytes - 1];  // so that no copy can be left out
    best = std::max(best, static_cast<double>(kBytes) * 1e9 /
                              static_cast<double>(std::max<int64_t>(end_ns - begin_ns, 1)));
  }
  return best;
}

}  // namespace lockstep::doctor
