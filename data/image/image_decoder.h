// From an encoded image to the square that a model sees.
//
//   encoded ──▶ cut (frame.h) ──▶ the part of it, decoded at 1, 1/2, 1/4 or 1/8 ──▶ scaled ──▶ out
//
// Thread-safety: one thread at a time; the decoder keeps its working memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "data/image/frame.h"
#include "data/image/image_info.h"
#include "data/image/resample.h"

namespace lockstep::data {

// The wanted form of images: (side, side, channels) with a frame, or all images of one size as they
// are.
struct WantedImage {
  ImageFrame frame;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;  // 1 or 3
};

class ImageDecoder {
 public:
  // `out`: channels x height x width bytes, (C, H, W). With a stream, a random frame takes its part
  // by chance. kBadData for a damaged image or, without a frame, an image of another size; the
  // message goes on after the file's name.
  Status decode(std::span<const uint8_t> encoded, const WantedImage& form,
                std::optional<uint64_t> stream, uint8_t* out);

  // The same for a mask: one channel of values, as the file has them (read_mask_info()). Each value
  // is the value of the pixel at its place (take_nearest.h), so a mask and an image of one size and
  // stream show the same part. `form`: the form of the image.
  Status decode_mask(std::span<const uint8_t> encoded, const WantedImage& form,
                     std::optional<uint64_t> stream, uint8_t* out);

 private:
  DecodedPart part_;
  ResampleScratch scratch_;
};

}  // namespace lockstep::data
