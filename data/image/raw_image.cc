#include "data/image/raw_image.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr std::array<uint8_t, 8> kMagic = {0x93, 'P', 'I', 'X', 'E', 'L', 'S', '\n'};
constexpr size_t kHeaderBytes = kMagic.size() + 4 * sizeof(uint32_t);

using Header = std::array<uint32_t, 4>;

Result<RawShape> shape_of(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) return bad("is truncated: it ends within its header");
  Header header;
  std::memcpy(header.data(), bytes.data() + kMagic.size(), sizeof header);
  const auto [width, height, channels, order] = header;
  const bool is_known = (channels == 1 || channels == 3) && order <= 1;
  if (!is_known || width == 0 || height == 0 || width > limits::kImageSide ||
      height > limits::kImageSide || uint64_t{width} * height > limits::kImagePixels)
    return bad("is damaged: its header gives the image an impossible size");
  const RawShape shape{width, height, channels, order == 1};
  if (bytes.size() != kHeaderBytes + shape.bytes())
    return bad("is damaged: it does not have as many pixels as its header says");
  return shape;
}

}  // namespace

void make_raw_image(const uint8_t* pixels, const RawShape& shape, std::vector<uint8_t>& out) {
  const Header header{shape.width, shape.height, shape.channels, shape.channels_last ? 1U : 0U};
  out.resize(kHeaderBytes + shape.bytes());
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  std::memcpy(out.data() + kMagic.size(), header.data(), sizeof header);
  std::memcpy(out.data() + kHeaderBytes, pixels, shape.bytes());
}

bool is_raw_image(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

Result<ImageInfo> raw_image_info(std::span<const uint8_t> bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RawShape shape, shape_of(bytes));
  return ImageInfo{ImageCodec::kPng, shape.width, shape.height, shape.channels};
}

Status decode_raw_image(std::span<const uint8_t> bytes, const DecodeRequest& request,
                        DecodedPart& out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RawShape shape, shape_of(bytes));
  if (shape.channels != request.channels)
    return bad("is an image of " + std::to_string(shape.channels) + " channels, but needs " +
               std::to_string(request.channels));
  const PixelBox& box = request.box;
  out.box = box;
  out.shrink = 1;
  out.pixel_bytes = shape.channels == 1 ? 1 : 4;
  out.bytes.assign(size_t{box.width} * box.height * out.pixel_bytes, 0);
  const size_t plane = shape.channels_last ? 1 : size_t{shape.width} * shape.height;
  const size_t step = shape.channels_last ? shape.channels : 1;  // from a pixel to the next
  const uint8_t* pixels = bytes.data() + kHeaderBytes;
  uint8_t* to = out.bytes.data();
  for (uint32_t y = box.y; y < box.y + box.height; ++y) {
    const uint8_t* from = pixels + (size_t{y} * shape.width + box.x) * step;
    for (uint32_t x = 0; x < box.width; ++x, from += step, to += out.pixel_bytes)
      for (uint32_t c = 0; c < shape.channels; ++c) to[c] = from[c * plane];
  }
  return Status::ok();
}

}  // namespace lockstep::data
