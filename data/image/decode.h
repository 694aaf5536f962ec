// Decoding of the part of an image that is wanted, at an eighth, quarter, half or all of its size.
//
// Grey and colours are given as asked: grey becomes three equal ones, colours become grey as
// 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601). Opacity is left out, 16 bits are rounded to 8, and
// four inks (CMYK) become colours as in print.
//
// The decoders are libjpeg-turbo's (the accurate integer transform, whose results do not depend on
// the processor) and libpng's.
//
// ERRORS kBadData, going on after the file's name: damaged, truncated, or more than the limits
// allow. Never more memory than limits::kImagePixels times four, and as many coefficients.
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
  ImageInfo info;         // as read_image_info() finds it in these bytes
  PixelBox box;           // within the image, in its own pixels
  uint32_t shrink = 1;    // 1, 2, 4 or 8; PNG images are decoded whole and with 1
  uint32_t channels = 3;  // 1 or 3
};

// Into `out`, whose memory is used again.
Status decode_jpeg(std::span<const uint8_t> encoded, const DecodeRequest& request,
                   DecodedPart& out);
Status decode_png(std::span<const uint8_t> encoded, const DecodeRequest& request, DecodedPart& out);

inline Status decode(std::span<const uint8_t> encoded, const DecodeRequest& request,
                     DecodedPart& out) {
  return request.info.codec == ImageCodec::kJpeg ? decode_jpeg(encoded, request, out)
                                                 : decode_png(encoded, request, out);
}

}  // namespace lockstep::data
