// The length of a gradient, for clipping: with the same bits wherever and by whomever it is
// computed.
//
// Each parameter's elements are cut, from its own start, into blocks of kNormBlock; the squares of
// a block are added in 16 lanes and the lanes in a fixed tree, in single precision; blocks and
// parameters are added in order, in double. Nothing depends on slices, buckets, ranks or threads.
//
// Also whether anything in it has overflowed, for loss scaling.
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

// No infinity and no NaN among them.
bool all_finite(const float* values, uint64_t n);

}  // namespace lockstep
