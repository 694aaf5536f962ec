// Decodes the wanted part of an image, at an eighth, a quarter, half or all of its size.
//
// The result is grey or colour, as asked. Grey becomes three equal channels. Colours become grey as
// 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601). Decoding drops opacity, rounds 16 bits to 8, and
// turns four inks (CMYK) into colours as in print.
//
// The decoders are libjpeg-turbo, libpng, libwebp, and one of our own for BMP. libjpeg-turbo uses
// its accurate integer transform, whose results do not depend on the processor.
//
// ERRORS kBadData for an image that is damaged, truncated, or beyond the limits; the message goes
// on after the file's name. Decoding never takes more memory than limits::kImagePixels times four,
// and as many coefficients.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "comm/base/status.h"
#include "data/image/image_info.h"
#include "data/image/pixels.h"

namespace lockstep::data {

struct DecodeRequest {
  ImageInfo info;         // as read_image_info() reads it from these bytes
  PixelBox box;           // within the image, in its own pixels
  uint32_t shrink = 1;    // 1, 2, 4 or 8; other than JPEG: 1
  uint32_t channels = 3;  // 1 or 3
  // PNG, one channel: the stored values of a mask, not their brightness. Grey of few bits is not
  // scaled, and a palette gives its indices.
  bool as_values = false;
};

// Decodes into `out`, whose memory is used again.
Status decode_jpeg(std::span<const uint8_t> encoded, const DecodeRequest& request,
                   DecodedPart& out);
Status decode_png(std::span<const uint8_t> encoded, const DecodeRequest& request, DecodedPart& out);
Status decode_webp(std::span<const uint8_t> encoded, const DecodeRequest& request,
                   DecodedPart& out);
Status decode_bmp(std::span<const uint8_t> encoded, const DecodeRequest& request, DecodedPart& out);

inline Status decode(std::span<const uint8_t> encoded, const DecodeRequest& request,
                     DecodedPart& out) {
  switch (request.info.codec) {
    case ImageCodec::kJpeg:
      return decode_jpeg(encoded, request, out);
    case ImageCodec::kPng:
      return decode_png(encoded, request, out);
    case ImageCodec::kWebp:
      return decode_webp(encoded, request, out);
    case ImageCodec::kBmp:
      return decode_bmp(encoded, request, out);
  }
  return {Code::kInternal, "is an image of an unknown kind"};
}

// As read_image_info(), without its limits, for bytes that begin as an image of the kind.
Result<ImageInfo> webp_info(std::span<const uint8_t> bytes);
Result<ImageInfo> bmp_info(std::span<const uint8_t> bytes);

// Makes one byte of each four (ITU-R BT.601).
inline void colours_to_grey(DecodedPart& out) {
  const size_t pixels = out.bytes.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* p = &out.bytes[4 * i];
    out.bytes[i] =
        static_cast<uint8_t>((p[0] * 19595U + p[1] * 38470U + p[2] * 7471U + 32768) >> 16);
  }
  out.bytes.resize(pixels);
  out.pixel_bytes = 1;
}

}  // namespace lockstep::data
