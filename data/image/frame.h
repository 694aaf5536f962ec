// Which part of an image a model sees, and how large: the first words of data.transforms
// (transform_list.h). Images of many sizes become squares of one.
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

struct ImageFrame {
  CropKind crop = CropKind::kNone;
  uint32_t size = 0;    // of the square, in pixels
  uint32_t resize = 0;  // the shorter side before it is cut; 0: as it is, but `size` at least
  bool operator==(const ImageFrame&) const = default;

  bool is_empty() const { return crop == CropKind::kNone; }
  bool is_random() const { return crop == CropKind::kRandom || crop == CropKind::kRandomResized; }
};

// "" of none, else one word, for names of files: "224-256".
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
// REQUIRES: !frame.is_empty(), sides > 0.
FrameCut cut_of(const ImageFrame& frame, uint32_t width, uint32_t height,
                std::optional<uint64_t> stream);

}  // namespace lockstep::data
