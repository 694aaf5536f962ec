// Images from bytes to floats on the device.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/base/mixing.h"

namespace lockstep::cuda {

// Converts (N, C, H, W) bytes to floats through one table of 256 floats a channel. `tables` is (C,
// 256) and holds exactly the values of data::Transform. The sample's own pixels have the part
// `share`; the rest comes from the sample before (comm/base/mixing.h).
struct ImageWork {
  const uint8_t* bytes = nullptr;
  const float* tables = nullptr;
  const float* share = nullptr;  // one number
  float* out = nullptr;
  uint32_t samples = 0;
  uint32_t channels = 0;
  uint32_t plane = 0;  // H * W
};

// The beginning of the plane with which plane p (sample, channel) is mixed.
LOCKSTEP_HOST_DEVICE uint64_t mixed_plane(const ImageWork& work, uint64_t p) {
  const uint64_t other = mixed_with(p / work.channels, work.samples);
  return (other * work.channels + p % work.channels) * work.plane;
}

}  // namespace lockstep::cuda
