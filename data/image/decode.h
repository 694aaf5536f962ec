// Decodes the wanted part of an image, at an eighth, a quarter, half or all of its size.
//
// The result is grey or colour, as asked. Grey becomes three equal channels. Colours become grey as
// 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601). Decoding drops opacity, rounds 16 bits to 8, and
// turns four inks (CMYK) into colours as in print.
//
// The decoders are libjpeg-turbo and libpng. libjpeg-turbo uses its accurate integer transform,
// whose results do not depend on the processor.
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
  uint32_t shrink = 1;    // 1, 2, 4 or 8; PNG images: always whole, and 1
  uint32_t channels = 3;  // 1 or 3
};

// Decodes into `out`, whose memory is used again.
Status decode_jpeg(std::span<const uint8_t> encoded, const DecodeRequest& request,
                   DecodedPart& out);
Status decode_png(std::span<const uint8_t> encoded, const DecodeRequest& request, DecodedPart& out);

inline Status decode(std::span<const uint8_t> encoded, const DecodeRequest& request,
                     DecodedPart& out) {
  return request.info.codec == ImageCodec::kJpeg ? decode_jpeg(encoded, request, out)
                                                 : decode_png(encoded, request, out);
}

}  // namespace lockstep::data
