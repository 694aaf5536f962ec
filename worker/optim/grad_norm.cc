#include "worker/optim/grad_norm.h"

#include <algorithm>
#include <bit>

#include "comm/base/target_clones.h"

namespace lockstep {
namespace {

constexpr uint64_t kLanes = kNormLanes;

LOCKSTEP_CLONES
float block_squares(const float* values, uint64_t n) {
  float lanes[kLanes] = {};
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (uint64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += values[i + lane] * values[i + lane];
  }
  for (uint64_t lane = 0; i + lane < n; ++lane) lanes[lane] += values[i + lane] * values[i + lane];
  for (uint64_t half = kLanes / 2; half > 0; half /= 2) {
    for (uint64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

LOCKSTEP_CLONES
bool block_is_finite(const float* values, uint64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinity or NaN
  uint32_t found = 0;
  for (uint64_t i = 0; i < n; ++i)
    found |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent ? 1u : 0u;
  return found == 0;
}

}  // namespace

double sum_of_squares(const float* values, std::span<const NormRange> ranges) {
  double sum = 0;
  for (const NormRange& range : ranges) {
    for (uint64_t at = 0; at < range.length; at += kNormBlock) {
      sum += static_cast<double>(
          block_squares(values + range.start + at, std::min(kNormBlock, range.length - at)));
    }
  }
  return sum;
}

bool all_finite(const float* values, uint64_t n) {
  for (uint64_t at = 0; at < n; at += kNormBlock)
    if (!block_is_finite(values + at, std::min(kNormBlock, n - at))) return false;
  return true;
}

}  // namespace lockstep
