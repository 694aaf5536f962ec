// Images and volumes of floats, as they are stored, become what a model gets.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {

// Writes shape.elements() float32 values, (C, H, W) or (C, D, H, W). `stored`:
// shape.stored_bytes(), at any address. False if a value is NaN, infinite or beyond float32.
// REQUIRES: shape.float_bytes > 0.
bool read_float_image(const uint8_t* stored, const SampleShape& shape, float* out);

// "images of 3x8x8 (C x H x W) of float32", or volumes; the floats as they are stored.
std::string floats_text(const SampleShape& shape);

// kBadData for a sample that read_float_image() refuses. `sample` says which one, and its file.
Status refused_floats(const std::string& sample);

}  // namespace lockstep::data
