#include "worker/model/int8/int8_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr uint64_t kFewestOfAChannel = 4;  // elements; with fewer the scales are no small part

// Calls visit(channel, place) for each element, in row-major order.
template <typename Visit>
void for_each_element(const ChannelExtents& extents, Visit visit) {
  uint64_t place = 0;
  for (uint64_t o = 0; o < extents.outer; ++o)
    for (uint64_t c = 0; c < extents.channels; ++c)
      for (uint64_t i = 0; i < extents.inner; ++i) visit(c, place++);
}

}  // namespace

ChannelExtents extents_along(std::span<const int64_t> shape, size_t dim) {
  ChannelExtents out;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto n = static_cast<uint64_t>(shape[d]);
    (d < dim ? out.outer : d == dim ? out.channels : out.inner) *= n;
  }
  return out;
}

bool is_worth_int8(std::span<const int64_t> shape, size_t dim) {
  if (shape.size() < 2 || dim >= shape.size()) return false;
  const ChannelExtents extents = extents_along(shape, dim);
  return extents.channels > 0 && extents.outer * extents.inner >= kFewestOfAChannel;
}

Result<Int8Values> to_int8(const std::string& name, std::span<const float> weights,
                           const ChannelExtents& extents) {
  Int8Values out;
  out.scales.assign(extents.channels, 0);
  bool is_finite = true;
  for_each_element(extents, [&](uint64_t channel, uint64_t place) {
    is_finite &= std::isfinite(weights[place]);
    out.scales[channel] = std::max(out.scales[channel], std::fabs(weights[place]));
  });
  if (!is_finite)
    return Status(Code::kBadData,
                  "the weights " + name +
                      " hold NaN or infinity, which 8 bits cannot hold; export an earlier "
                      "checkpoint (--checkpoint STEP), or leave out --int8");
  for (float& scale : out.scales) {
    // A quotient that is subnormal would lose bits, and one that is 0 would divide by 0.
    scale = scale == 0 ? 1
                       : std::max(scale / static_cast<float>(kInt8Most),
                                  std::numeric_limits<float>::min());
  }
  out.numbers.resize(weights.size());
  constexpr auto kMost = static_cast<float>(kInt8Most);
  for_each_element(extents, [&](uint64_t channel, uint64_t place) {
    const float number = std::nearbyint(weights[place] / out.scales[channel]);
    out.numbers[place] = static_cast<int8_t>(std::clamp(number, -kMost, kMost));
  });
  return out;
}

void from_int8(std::span<const int8_t> numbers, std::span<const float> scales,
               const ChannelExtents& extents, std::span<float> out) {
  for_each_element(extents, [&](uint64_t channel, uint64_t place) {
    out[place] = static_cast<float>(numbers[place]) * scales[channel];
  });
}

}  // namespace lockstep
