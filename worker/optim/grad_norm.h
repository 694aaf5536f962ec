// The length of a gradient, for clipping: with the same bits wherever and by whomever it is
// computed.
//
// Each parameter's elements are cut, from its own start, into blocks of kNormBlock; the squares of
// a block are added in 16 lanes and the lanes in a fixed tree, in single precision; blocks and
// parameters are added in order, in double. Nothing depends on slices, buckets, ranks or threads.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

inline constexpr uint64_t kNormBlock = 4096;

// Elements [start, start + length) of one parameter in the flat buffer.
struct NormRange {
  uint64_t start = 0;
  uint64_t length = 0;
};

// The sum of squares of the ranges.
double sum_of_squares(const float* values, std::span<const NormRange> ranges);

// By what gradients of this sum of squares are multiplied to be at most `clip_norm` long, as
// torch.nn.utils.clip_grad_norm_ does; 1 when they are short enough. A norm that is not finite
// gives 1: such a step is for others to judge. REQUIRES: clip_norm > 0.
float clip_scale(double squares, double clip_norm);

}  // namespace lockstep
