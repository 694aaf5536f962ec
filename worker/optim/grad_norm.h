// The length of a gradient, for clipping. The bits are the same on whichever CPU it is computed. A
// GPU adds the blocks in another order (worker/cuda/kernels/apply_state.h).
//
// The elements of a parameter are cut, from the parameter's own start, into blocks of kNormBlock.
// The squares of a block are added in 16 lanes, and the lanes in a fixed tree, in single precision.
// Blocks and parameters are added in order, in double precision. So the bits depend on no slices,
// buckets, ranks or threads.
//
// all_finite() finds an overflow, for loss scaling.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "worker/optim/norm_elements.h"

namespace lockstep {

// Elements [start, start + length) of one parameter in the flat buffer.
struct NormRange {
  uint64_t start = 0;
  uint64_t length = 0;
};

// The sum of squares of the ranges.
double sum_of_squares(const float* values, std::span<const NormRange> ranges);

// True if no value is an infinity or NaN.
bool all_finite(const float* values, uint64_t n);

}  // namespace lockstep
