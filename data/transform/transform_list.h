// What data.transforms says: a list of words, some with a number behind "=".
//
//   resize=N             scaled until the shorter side has N pixels
//   center_crop=N        of that a square of N x N in its middle
//   random_crop=N        at a random place; of evaluation data in the middle
//   random_resized_crop=N  any part, scaled to N x N (data/image/frame.h); of evaluation data the
//                        middle of what `resize` says, or resize=8/7 N
//   flip[=P]             mirrored left to right with probability P (0.5)
//   flip_vertical[=P]    mirrored top to bottom
//   pad_crop=N           a black border of N pixels all around, and of that a window of the
//                        image's size at a random place
//   rotate=DEGREES       around its middle, by an angle up to that much either way; what comes from
//                        outside is black
//   brightness=A         times a factor between 1 - A and 1 + A
//   contrast=A           the same of the distance from the image's mean grey
//   saturation=A         the same of the distance from every pixel's grey; of three channels
//   hue=A                turned by up to A of the whole circle either way, 0.5 at most; of three
//                        channels
//   cutout=N             a square of N x N pixels around a random place becomes the data set's mean
//   normalize            zero mean, unit variance (normalize.h); behind it only a crop and the next
//   mixup[=ALPHA]        each image becomes a weighted sum with another of its batch, and its label
//                        both in the same shares, drawn from Beta(ALPHA, ALPHA) (1)
//   cutmix[=ALPHA]       each gets a rectangle of another, of a share drawn likewise; with mixup
//                        either one or the other, as often
//
// The first four are all that may change a size, of images stored as pixels those of one or three
// channels; of the crops there is one at most. They stand in front, but for center_crop and
// random_crop, which may also stand behind flips, brightness, saturation, hue and normalize. They
// are done first even then, so that only their window is decoded (adr/0003), and the bytes are
// exactly those of the words in their order:
//
//   - what works on pixel after pixel makes the same of one, whatever is around it;
//   - a flipped image's window is the flipped window of the mirrored place (ImageFrame::flip);
//   - every choice has a stream of its own, whatever is done first (augment.h);
//   - an image smaller than the window is enlarged as it is decoded, in front of all the words.
//
// Nothing else may be in front of a crop: contrast takes the mean of the whole image, rotate its
// middle, pad_crop and cutout a place in it. And nothing at all in front of what scales, resize and
// random_resized_crop: pixels that were rounded have other means, and of a flipped image other
// squares would become one where it is shrunk while it is decoded.
//
// The last two mix what the others made (batch_mix.h), and nothing stands behind them. They and all
// from `flip` to `cutout` (augment.h) are what training data get and evaluation data do not.
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

// Their numbers are part of random streams: never change one.
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

// The parameter of Beta of each; 0: it is not done.
struct MixRule {
  double mixup = 0;
  double cutmix = 0;
  bool operator==(const MixRule&) const = default;

  bool is_empty() const { return mixup == 0 && cutmix == 0; }
};

struct TransformList {
  ImageFrame frame;                  // done first, wherever it was given
  std::vector<AugmentStep> augment;  // in the order given
  bool normalizes = false;
  MixRule mix;
};

// kUsage for a word that is not known, naming the nearest one, for one given twice, behind what
// comes last or, as a crop, behind what it cannot be done before, and for a number that is missing,
// not wanted or out of range.
Result<TransformList> parse_transforms(const std::vector<std::string>& words);

}  // namespace lockstep::data
