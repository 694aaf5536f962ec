// Which part of an image a model sees, and how large: the first words of data.transforms
// (transform_list.h). Images of many sizes become squares of one.
//
// A window may stand behind flips there. It is cut first all the same, so that nothing else is
// decoded, from where the flipped image will have it: of the image as it is, the mirrored place.
//
// Sources: random_resized_crop as in C. Szegedy et al., Going Deeper with Convolutions, CVPR 2015,
// section 6, with the ranges that PyTorch's torchvision made usual: 0.08 to 1 of the area, 3/4 to
// 4/3 of width to height.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/status.h"
#include "data/image/pixels.h"

namespace lockstep::data {

enum class CropKind : uint8_t {
  kNone,           // images as they are, all of one size
  kCenter,         // of training data and of evaluation data
  kRandom,         // of evaluation data the middle, and so below
  kRandomResized,  // of training data
};

// Which way an image is mirrored. The numbers are those of AugmentKind, and part of random streams.
enum class Flip : uint64_t {
  kLeftToRight = 1,
  kTopToBottom = 2,
};

// Whether the image of this stream is, drawn once: for the window here and for its pixels in
// augment.h.
bool is_flipped(Flip flip, double probability, uint64_t stream);

struct ImageFrame {
  CropKind crop = CropKind::kNone;
  uint32_t size = 0;    // of the square, in pixels
  uint32_t resize = 0;  // the shorter side before it is cut; 0: as it is, but `size` at least
  // With which probability training images are flipped between being scaled and being cut.
  double flip = 0;
  double flip_vertical = 0;
  bool operator==(const ImageFrame&) const = default;

  bool is_empty() const { return crop == CropKind::kNone; }
  bool is_random() const { return crop == CropKind::kRandom || crop == CropKind::kRandomResized; }
};

// "" of none, else one word, for names of files: "2-224-256". It says nothing of flips: what lies
// in these files is of images without a stream.
std::string to_text(const ImageFrame& frame);

// `box` of the image is scaled to `width` x `height`, and of that the `window` is what the model
// sees.
struct FrameCut {
  PixelBox box;
  uint32_t width = 0;
  uint32_t height = 0;
  PixelBox window;
  bool operator==(const FrameCut&) const = default;
};

// Of an image of `width` x `height`, by chance where the frame is random and there is a stream.
// REQUIRES: !frame.is_empty(), sides > 0; no flips of kRandomResized.
FrameCut cut_of(const ImageFrame& frame, uint32_t width, uint32_t height,
                std::optional<uint64_t> stream);

}  // namespace lockstep::data
