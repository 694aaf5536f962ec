// Reads what the first bytes of an encoded image say about it. The parser treats every byte as
// hostile.
//
// Sources: JPEG's markers, ITU-T T.81, annex B; PNG's first chunk, ISO/IEC 15948, 11.2.2; WebP's,
// RFC 9649; BMP's headers, Windows' wingdi.h. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "comm/base/byte_units.h"
#include "comm/base/status.h"

namespace lockstep::data {

// Index files hold these numbers: never change one.
enum class ImageCodec : uint8_t { kJpeg = 1, kPng = 2, kWebp = 3, kBmp = 4 };

struct ImageInfo {
  ImageCodec codec = ImageCodec::kJpeg;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;  // 1: grey; 3: colours, in any form
  bool operator==(const ImageInfo&) const = default;
};

// Enough of a file for most images. Cameras may put more in front of a JPEG image's size.
inline constexpr size_t kImageHeadBytes = 16 * kKib;

// kBadData, with a message that goes on after the file's name, if the image
// - is of another kind than ImageCodec
// - cannot be decoded here (lossless JPEG, JPEG of 12 bits, animations)
// - is larger than limits::kImageSide or kImagePixels
// - ends too early; more bytes of the file may help.
Result<ImageInfo> read_image_info(std::span<const uint8_t> bytes);

// The same of a mask: a grey or palette PNG of at most 8 bits, whose values are kept as they are.
// kBadData also for every other image, saying why it cannot be a mask.
Result<ImageInfo> read_mask_info(std::span<const uint8_t> bytes);

// True if the first bytes say JPEG, PNG, WebP or BMP.
bool begins_as_image(std::span<const uint8_t> bytes);

// True if the name ends like an image that Lockstep reads: .jpg, .jpeg, .jpe, .jfif, .png, .webp or
// .bmp, in any case.
bool has_image_ending(std::string_view name);

// True if it ends like an image of another kind: .tif, .gif, .heic ...
bool has_foreign_image_ending(std::string_view name);

}  // namespace lockstep::data
