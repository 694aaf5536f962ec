// Images from bytes to floats on the device.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>

namespace lockstep::cuda {

// (N, C, H, W) bytes to floats through one table of 256 floats a channel, `tables` (C, 256): the
// very values of data::Transform.
struct ImageWork {
  const uint8_t* bytes = nullptr;
  const float* tables = nullptr;
  float* out = nullptr;
  uint32_t samples = 0;
  uint32_t channels = 0;
  uint32_t plane = 0;  // H * W
};

}  // namespace lockstep::cuda
