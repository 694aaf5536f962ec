// Values for tests of layers, and how exact a result of their type can be.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "comm/base/prng.h"
#include "worker/cuda/kernels/bf16.h"

namespace lockstep::cuda {

template <typename T>
std::vector<T> noise(uint64_t key, uint64_t n, float offset = 0) {
  std::vector<T> out;
  for (uint64_t i = 0; i < n; ++i)
    out.push_back(
        from_float<T>(offset + static_cast<float>(stream_value(key, i) % 4001) / 1000 - 2));
  return out;
}

// A result of type T may be off by its own rounding, and a little for the float sums before it.
template <typename T>
double tolerance(double expected) {
  const double half_step = std::is_same_v<T, Bf16> ? 0x1p-8 : 0x1p-24;
  return std::abs(expected) * half_step + 4e-6;
}

}  // namespace lockstep::cuda
