// Partial sums in the device's memory, for generations in which no gradient goes through the
// host's: a rank that is alone, or ranks whose devices are connected (DeviceCollective). Regions
// and their layout are those of the GradientBuffer, up to the control section, which the hosts add
// up themselves.
//
// Everything is enqueued, and nothing waits: what was brought is there for a merge, a merge's sum
// for the next one, and after finish() for Device::apply(), while backward goes on.
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

  // What backward has written for the region by now, of `range`, is there for the merges that
  // follow. `range` as below.
  virtual Status bring(uint32_t region, const ElementRange& range) = 0;

  // The addition of add_into(). `range`: gradients and statistics only.
  virtual Status merge(const RegionMerge& merge, const ElementRange& range) = 0;

  // What was asked for is there for whatever the device is given from here on.
  virtual Status finish() = 0;
};

}  // namespace lockstep
