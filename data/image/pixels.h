// Thread-safety: values.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

// A rectangle of an image, in its pixels; not empty.
struct PixelBox {
  uint32_t x = 0;
  uint32_t y = 0;
  uint32_t width = 0;
  uint32_t height = 0;
  bool operator==(const PixelBox&) const = default;
};

// The decoded part of an image: at least the box that the caller asked for. One decoded pixel
// stands for shrink x shrink pixels of the image.
struct DecodedPart {
  std::vector<uint8_t> bytes;  // (height, width, pixel_bytes)
  PixelBox box;                // of the shrunk image
  uint32_t shrink = 1;
  uint32_t pixel_bytes = 0;  // 1 for grey, 4 for colours; the fourth byte has no meaning
};

}  // namespace lockstep::data
