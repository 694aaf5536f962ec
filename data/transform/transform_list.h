// data.transforms: a list of words, some with a number after "=".
//
//   resize=N             scale until the shorter side has N pixels
//   center_crop=N        cut a square of N x N from the middle
//   random_crop=N        cut it at a random place; for evaluation data in the middle
//   random_resized_crop=N  any part, scaled to N x N (data/image/frame.h); for evaluation data the
//                        middle of what `resize` says, or resize=8/7 N
//   flip[=P]             mirror left to right with probability P, 0.5 by default
//   flip_vertical[=P]    mirror top to bottom
//   pad_crop=N           add a black border of N pixels all around, then cut a window of the
//                        image's size at a random place
//   rotate=DEGREES       rotate around the middle, by an angle up to DEGREES either way; pixels
//                        from outside are black
//   brightness=A         multiply by a factor between 1 - A and 1 + A
//   contrast=A           the same for the distance from the image's mean grey
//   saturation=A         the same for the distance from every pixel's grey; three channels only
//   hue=A                turn by up to A of the whole circle either way, 0.5 at most; three
//                        channels only
//   cutout=N             fill a square of N x N pixels around a random place with the data set's
//                        mean
//   normalize            zero mean, unit variance (normalize.h); only a crop, mixup and cutmix may
//                        follow
//   mixup[=ALPHA]        each image becomes a weighted sum with another of its batch, and its label
//                        both in the same shares, drawn from Beta(ALPHA, ALPHA);
//                        ALPHA is 1 by default
//   cutmix[=ALPHA]       each image gets a rectangle of another, of a share drawn the same way;
//                        with mixup, either mixup or cutmix, equally often
//
// ORDER. Only the first four words may change a size; images stored as pixels must have one or
// three channels for them. There is at most one crop. The four words stand in front, with one
// exception: center_crop and random_crop may also stand after flips, brightness, saturation, hue
// and normalize. Even then Lockstep crops first, so it decodes only the window (adr/0003). The
// bytes are exactly as if the words ran in their order:
//
// - A step that works on pixel after pixel gives the same pixel, whatever is around the pixel.
// - The window of a flipped image is the flipped window of the mirrored place (ImageFrame::flip).
// - Every choice has a stream of its own, so the order of the work does not matter (augment.h).
// - An image smaller than the window is enlarged while it is decoded, before all the words.
//
// Nothing else may stand in front of a crop: contrast takes the mean of the whole image, rotate its
// middle, pad_crop and cutout a place in it. Nothing at all may stand in front of resize and
// random_resized_crop, which scale. Rounded pixels have other means. And when a flipped image is
// shrunk while it is decoded, other squares of pixels would become one.
//
// mixup and cutmix mix what the other words made (batch_mix.h); nothing may follow them. Only
// training data get mixup, cutmix and the words from `flip` to `cutout` (augment.h); evaluation
// data do not.
//
// Sources: pad_crop, flip: K. He et al., Deep Residual Learning, CVPR 2016, section 4.2; cutout: T.
// DeVries, G. Taylor, arXiv 1708.04552.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/image/frame.h"

namespace lockstep::data {

// The numbers are part of random streams: never change one.
enum class AugmentKind : uint32_t {
  kFlip = 1,  // Flip::kLeftToRight
  kFlipVertical = 2,
  kPadCrop = 3,
  kRotate = 4,
  kBrightness = 5,
  kContrast = 6,
  kSaturation = 7,
  kCutout = 8,
  kHue = 9,
};

struct AugmentStep {
  AugmentKind kind;
  double amount;  // P, N, DEGREES or A
  bool operator==(const AugmentStep&) const = default;
};

// The Beta parameter of each; 0: off.
struct MixRule {
  double mixup = 0;
  double cutmix = 0;
  bool operator==(const MixRule&) const = default;

  bool is_empty() const { return mixup == 0 && cutmix == 0; }
};

struct TransformList {
  ImageFrame frame;                  // comes first, wherever it stands in the list
  std::vector<AugmentStep> augment;  // in the order given
  bool normalizes = false;
  MixRule mix;
};

// kUsage for
// - an unknown word; the message names the nearest word
// - a word that occurs twice
// - a word after the last allowed one, or a crop after a word that must not precede it
// - a number that is missing, not wanted or out of range
Result<TransformList> parse_transforms(const std::vector<std::string>& words);

}  // namespace lockstep::data
