// Scales images. Every pixel of the result is a weighted mean of the pixels around its place. The
// weights form a triangle as wide as two pixels of the result, or of the image when enlarging
// ("bilinear, antialiased").
//
// Columns are scaled first, then rows, each rounded to bytes. Weights are integers with 22 bits
// after the point. So the result does not depend on the instruction set, and equals Pillow's
// Image.resize(..., BILINEAR) bit for bit (its method: https://github.com/python-pillow/Pillow,
// Resample.c). The exception, from Pillow 13 on: where the height loses more than twice as many
// pixels as the width, it scales rows first.
//
// Thread-safety: pure functions, except for the scratch, which belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/pixels.h"

namespace lockstep::data {

// One axis. [begin, begin + length) of the source, in source pixels, becomes `scaled` pixels long.
// The result holds pixels [first, first + count) of the scaled axis.
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
  std::vector<int32_t> weights;  // `most` for each result
  uint32_t most = 0;
};

// Pixels beyond the box do not count, and no pixel at or beyond `source_pixels` is read. A box
// beyond the source gives 0.
void make_weights(const AxisSpec& axis, uint32_t source_pixels, AxisWeights& out);

struct ResampleScratch {
  AxisWeights columns;
  AxisWeights rows;
  std::vector<uint8_t> narrow;  // scaled in width only
};

// Scales `source` into `out`, (channels, y.count, x.count). `channels` is 1, or 3 for pixels of
// four bytes. Places are places of `source`.
void resample(const DecodedPart& source, const AxisSpec& x, const AxisSpec& y,
              ResampleScratch& scratch, uint8_t* out);

}  // namespace lockstep::data
