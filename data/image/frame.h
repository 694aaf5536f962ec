// Says which part of an image a model sees, and how large: the first words of data.transforms
// (transform_list.h). Images of many sizes become squares of one size.
//
// data.transforms may name a window after flips. Lockstep still cuts the window first, so it
// decodes nothing else. It cuts where the flipped image will have the window: at the mirrored place
// of the unflipped image.
//
// Sources: random_resized_crop as in C. Szegedy et al., Going Deeper with Convolutions, CVPR 2015,
// section 6, with the ranges that PyTorch's torchvision made usual: 0.08 to 1 of the area, 3/4 to
// 4/3 of width to height.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/status.h"
#include "data/image/pixels.h"

namespace lockstep::data {

enum class CropKind : uint8_t {
  kNone,           // images as they are, all of one size
  kCenter,         // training and evaluation data
  kRandom,         // training data; evaluation data: the middle
  kRandomResized,  // training data; evaluation data: the middle
};

// The direction of mirroring. The numbers equal AugmentKind's, and are part of random streams.
enum class Flip : uint64_t {
  kLeftToRight = 1,
  kTopToBottom = 2,
};

// True if the image of this stream is mirrored. The draw is the same for the window here and for
// the pixels in augment.h.
bool is_flipped(Flip flip, double probability, uint64_t stream);

struct ImageFrame {
  CropKind crop = CropKind::kNone;
  uint32_t size = 0;    // of the square, in pixels
  uint32_t resize = 0;  // the shorter side before the cut; 0: as it is, but at least `size`
  // The probability of flipping a training image between scaling and cutting.
  double flip = 0;
  double flip_vertical = 0;
  bool operator==(const ImageFrame&) const = default;

  bool is_empty() const { return crop == CropKind::kNone; }
  bool is_random() const { return crop == CropKind::kRandom || crop == CropKind::kRandomResized; }
};

// "" for an empty frame, else one word for file names: "2-224-256". The word leaves out flips:
// these files hold images without a stream.
std::string to_text(const ImageFrame& frame);

// The shorter side of evaluation's images before the cut; 0: as it is, but at least `size`.
inline uint32_t evaluation_side(const ImageFrame& frame) {
  if (frame.resize > 0 || frame.crop != CropKind::kRandomResized) return frame.resize;
  return static_cast<uint32_t>(std::lround(frame.size * 8.0 / 7.0));  // 256 for 224
}

// Scales `box` of the image to `width` x `height`. The model sees the `window` of the result.
struct FrameCut {
  PixelBox box;
  uint32_t width = 0;
  uint32_t height = 0;
  PixelBox window;
  bool operator==(const FrameCut&) const = default;
};

// The cut for an image of `width` x `height`, by chance if the frame is random and there is a
// stream. REQUIRES: !frame.is_empty(), sides > 0; no flips with kRandomResized.
FrameCut cut_of(const ImageFrame& frame, uint32_t width, uint32_t height,
                std::optional<uint64_t> stream);

}  // namespace lockstep::data
