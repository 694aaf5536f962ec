// Cuts and scales a mask, whose values must not be mixed: every pixel of the result is the pixel of
// the source in which its middle lies (as Pillow's NEAREST and torchvision's NEAREST_EXACT).
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

#include "data/image/frame.h"
#include "data/image/pixels.h"

namespace lockstep::data {

// Writes the window of `cut` to `out`, one byte a pixel. REQUIRES: `mask` has one byte a pixel, is
// not shrunk, and has the box of `cut`.
void take_nearest(const DecodedPart& mask, const FrameCut& cut, uint8_t* out);

}  // namespace lockstep::data
