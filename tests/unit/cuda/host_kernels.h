// Computes in loops on the CPU what the kernels at the end of a step compute.
#pragma once

#include <cstdint>

#include "worker/cuda/kernels/apply_state.h"
#include "worker/cuda/kernels/tables.h"

namespace lockstep::cuda {

inline BlockTotals totals_of(const float* sums, const TotalsBlock& block) {
  float lanes[kNormLanes];
  BlockTotals totals;
  for (uint32_t lane = 0; lane < kNormLanes; ++lane) {
    lanes[lane] = lane_squares(sums + block.start, block.length, lane);
    totals.is_finite &= is_lane_finite(sums + block.start, block.length, lane) ? 1 : 0;
  }
  for (uint32_t half = kNormLanes / 2; half > 0; half /= 2) {
    for (uint32_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  totals.squares = block.in_norm != 0 ? lanes[0] : 0;
  return totals;
}

}  // namespace lockstep::cuda
