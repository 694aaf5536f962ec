// Images from bytes to floats on the device.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/base/mixing.h"

namespace lockstep::cuda {

// (N, C, H, W) bytes to floats through one table of 256 floats a channel, `tables` (C, 256): the
// very values of data::Transform. Of which so large a `share`, the rest is of the sample before
// (comm/base/mixing.h).
struct ImageWork {
  const uint8_t* bytes = nullptr;
  const float* tables = nullptr;
  const float* share = nullptr;  // one number
  float* out = nullptr;
  uint32_t samples = 0;
  uint32_t channels = 0;
  uint32_t plane = 0;  // H * W
};

// Where plane p (sample, channel) of the sample begins with which p's is mixed.
LOCKSTEP_HOST_DEVICE uint64_t mixed_plane(const ImageWork& work, uint64_t p) {
  const uint64_t other = mixed_with(p / work.channels, work.samples);
  return (other * work.channels + p % work.channels) * work.plane;
}

}  // namespace lockstep::cuda
