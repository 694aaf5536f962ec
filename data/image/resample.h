// Scaling of images: every pixel of the result is a weighted mean of those around its place, by a
// triangle as wide as two pixels of the result, or of the image where that is enlarged
// ("bilinear, antialiased").
//
// Columns first, then rows, each rounded to bytes; weights are integers of 22 bits behind the
// point. So the bits depend on no instruction set, and are those of Pillow's Image.resize(...,
// BILINEAR) (its method: https://github.com/python-pillow/Pillow, Resample.c).
//
// Thread-safety: pure functions but for the scratch, which is of one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/pixels.h"

namespace lockstep::data {

// One axis: of [begin, begin + length) of the source, in its pixels, made `scaled` pixels long,
// those of [first, first + count).
struct AxisSpec {
  double begin = 0;
  double length = 0;
  uint32_t scaled = 0;
  uint32_t first = 0;
  uint32_t count = 0;
};

// Weights of one axis: result i is the sum of taps[i].count pixels from taps[i].first on.
struct AxisWeights {
  struct Taps {
    uint32_t first;
    uint32_t count;
  };
  std::vector<Taps> taps;
  std::vector<int32_t> weights;  // `most` by result
  uint32_t most = 0;
};

// Pixels beyond the box count nothing, and none at or beyond `source_pixels` is ever read: of a box
// that lies beyond the source the result is 0.
void make_weights(const AxisSpec& axis, uint32_t source_pixels, AxisWeights& out);

struct ResampleScratch {
  AxisWeights columns;
  AxisWeights rows;
  std::vector<uint8_t> narrow;  // scaled in width only
};

// Of `source` into `out`, (channels, y.count, x.count), where channels is 1, or 3 of pixels of four
// bytes. Places are of `source`.
void resample(const DecodedPart& source, const AxisSpec& x, const AxisSpec& y,
              ResampleScratch& scratch, uint8_t* out);

}  // namespace lockstep::data
