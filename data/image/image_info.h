// What the first bytes of an encoded image say of it. Every byte is believed to be hostile.
//
// Sources: JPEG's markers, ITU-T T.81, annex B; PNG's first chunk, ISO/IEC 15948, 11.2.2.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep::data {

// Their numbers stand in index files: never change one.
enum class ImageCodec : uint8_t { kJpeg = 1, kPng = 2 };

struct ImageInfo {
  ImageCodec codec = ImageCodec::kJpeg;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;  // 1: grey; 3: colours, in whatever form
  bool operator==(const ImageInfo&) const = default;
};

// How much of a file is enough for most: cameras put more in front of a JPEG image's size.
inline constexpr size_t kImageHeadBytes = 16 * 1024;

// kBadData, what() goes on after the file's name, for what is neither JPEG nor PNG, cannot be
// decoded here (lossless, 12 bits), is larger than limits::kImageSide or kImagePixels, or ends too
// early: with more bytes of the file that may change.
Result<ImageInfo> read_image_info(std::span<const uint8_t> bytes);

// Whether they are taken for a JPEG or PNG image, by the first of them.
bool begins_as_image(std::span<const uint8_t> bytes);

// Whether a file is taken for an image, by its name: .jpg, .jpeg, .png, in any case.
bool has_image_ending(std::string_view name);

}  // namespace lockstep::data
