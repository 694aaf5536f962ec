// Weights in 8 bits: whole numbers from -127 to 127 and one scale for each output channel, so that
// a weight is about its number times the scale of its channel.
//
// A channel's scale is its largest magnitude / 127. The number of a weight is weight / scale in
// float32, rounded to the nearest, ties to even. So a weight moves by half a scale at most.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

inline constexpr int kInt8Most = 127;  // -128 is not used: the numbers are symmetric

// A row-major tensor as (outer, channels, inner): channel c has the elements [o][c][i] for all o
// and i.
struct ChannelExtents {
  uint64_t outer = 1;
  uint64_t channels = 1;
  uint64_t inner = 1;

  uint64_t elements() const { return outer * channels * inner; }
};

// `dim` is the dimension of the channels. REQUIRES: dim < shape.size().
ChannelExtents extents_along(std::span<const int64_t> shape, size_t dim);

struct Int8Values {
  std::vector<int8_t> numbers;  // extents.elements()
  std::vector<float> scales;    // extents.channels; 1 for a channel of zeros, never 0
};

// Whether 8 bits are worth it for a tensor of this shape: a matrix, kernel or embedding that is not
// so narrow that the scales take the bytes that the numbers save.
bool is_worth_int8(std::span<const int64_t> shape, size_t dim);

// `name` is the tensor's, for the message. kBadData if a weight is not finite.
Result<Int8Values> to_int8(const std::string& name, std::span<const float> weights,
                           const ChannelExtents& extents);

// number * scale for each element. REQUIRES: spans of the sizes that `extents` tells.
void from_int8(std::span<const int8_t> numbers, std::span<const float> scales,
               const ChannelExtents& extents, std::span<float> out);

}  // namespace lockstep
