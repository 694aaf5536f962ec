#include "worker/model/dropout_mask.h"

#include "comm/base/prng.h"

namespace lockstep {

void fill_dropout_mask(uint64_t key, double p, float* mask, uint64_t n) {
  const auto scale = static_cast<float>(1 / (1 - p));
  // Half of a 64-bit number decides about one element: 32 bits are enough for a probability.
  const auto dropped_below = static_cast<uint32_t>(p * 0x1p32);
  for (uint64_t i = 0; i < n; i += 2) {
    const uint64_t bits = stream_value(key, i / 2);
    mask[i] = static_cast<uint32_t>(bits) >= dropped_below ? scale : 0.0f;
    if (i + 1 < n) mask[i + 1] = static_cast<uint32_t>(bits >> 32) >= dropped_below ? scale : 0.0f;
  }
}

}  // namespace lockstep
