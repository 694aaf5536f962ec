// Tells whether floats have the same bits: 0 and -0 differ, and a NaN equals a NaN of the same
// bits.
#pragma once

#include <algorithm>
#include <span>

namespace lockstep {

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  const auto bytes_a = std::as_bytes(a);
  const auto bytes_b = std::as_bytes(b);
  return std::equal(bytes_a.begin(), bytes_a.end(), bytes_b.begin(), bytes_b.end());
}

}  // namespace lockstep
