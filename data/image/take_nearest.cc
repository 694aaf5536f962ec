#include "data/image/take_nearest.h"

#include <vector>

namespace lockstep::data {
namespace {

// Where pixel i of `scaled` pixels lies among `length`: below `length`.
uint32_t nearest_pixel(uint32_t i, uint32_t length, uint32_t scaled) {
  return static_cast<uint32_t>((2 * uint64_t{i} + 1) * length / (2 * uint64_t{scaled}));
}

}  // namespace

void take_nearest(const DecodedPart& mask, const FrameCut& cut, uint8_t* out) {
  const uint32_t left = cut.box.x - mask.box.x;
  const uint32_t top = cut.box.y - mask.box.y;
  std::vector<uint32_t> columns(cut.window.width);
  for (uint32_t x = 0; x < cut.window.width; ++x)
    columns[x] = left + nearest_pixel(cut.window.x + x, cut.box.width, cut.width);
  for (uint32_t y = 0; y < cut.window.height; ++y) {
    const uint32_t row = top + nearest_pixel(cut.window.y + y, cut.box.height, cut.height);
    const uint8_t* from = mask.bytes.data() + size_t{row} * mask.box.width;
    for (const uint32_t column : columns) *out++ = from[column];
  }
}

}  // namespace lockstep::data
