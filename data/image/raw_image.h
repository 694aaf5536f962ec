// An image that is not encoded, in a form that passes through ImageDecoder, so that the decoder
// cuts and scales it like an encoded image:
//
//   magic (8 bytes) · width, height, channels, order: u32, little-endian · the pixels as stored
//
// Data sets make it of their samples (data/dataset/framed_dataset.h). No file holds it today, but a
// file could: the parser treats every byte as hostile.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/image/decode.h"
#include "data/image/image_info.h"
#include "data/image/pixels.h"

namespace lockstep::data {

struct RawShape {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;       // 1 or 3
  bool channels_last = false;  // (H, W, C), else (C, H, W)

  size_t bytes() const { return size_t{width} * height * channels; }
};

// `pixels`: shape.bytes() bytes.
void make_raw_image(const uint8_t* pixels, const RawShape& shape, std::vector<uint8_t>& out);

bool is_raw_image(std::span<const uint8_t> bytes);

// As read_image_info(), for the bytes of a raw image. The codec of the result has no meaning.
Result<ImageInfo> raw_image_info(std::span<const uint8_t> bytes);

// As decode(), for a raw image. REQUIRES: request.info is the image's info; as many channels as the
// image; no shrinking.
Status decode_raw_image(std::span<const uint8_t> bytes, const DecodeRequest& request,
                        DecodedPart& out);

}  // namespace lockstep::data
