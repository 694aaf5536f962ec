// Partial sums in the device's memory, for generations in which no gradient goes through the
// host's: a rank that is alone, or ranks whose devices are connected (DeviceCollective). Regions
// and their layout are those of the GradientBuffer, up to the control section, which the hosts add
// up themselves.
//
// Everything is enqueued on the lane of LibTorch's operators, and nothing waits: what backward
// wrote is there for a merge, and a merge's sum for the next one and for Device::apply().
//
// Thread-safety: as Device.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

class DeviceSums {
 public:
  virtual ~DeviceSums() = default;

  virtual float* partial(uint32_t region) = 0;  // memory of the device

  // The addition of add_into(). `range`: gradients and statistics only.
  virtual Status merge(const RegionMerge& merge, const ElementRange& range) = 0;
};

}  // namespace lockstep
