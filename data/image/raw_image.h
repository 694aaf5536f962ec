// An image that is not encoded at all, in the form in which it goes through ImageDecoder as encoded
// ones do, to be cut and scaled like them:
//
//   magic (8 bytes) · width, height, channels, order: u32, little-endian · the pixels as stored
//
// Data sets make it of their samples (data/dataset/framed_dataset.h). It stands in no file, but
// could: every byte is believed to be hostile.
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

// Of shape.bytes() pixels.
void make_raw_image(const uint8_t* pixels, const RawShape& shape, std::vector<uint8_t>& out);

bool is_raw_image(std::span<const uint8_t> bytes);

// As read_image_info(), of bytes that are a raw image; its codec says nothing.
Result<ImageInfo> raw_image_info(std::span<const uint8_t> bytes);

// As decode(), of a raw image with that info and as many channels; without shrinking.
Status decode_raw_image(std::span<const uint8_t> bytes, const DecodeRequest& request,
                        DecodedPart& out);

}  // namespace lockstep::data
