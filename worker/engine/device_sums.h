// Partial sums in the device's memory. They serve generations in which no gradient goes through the
// host's memory: a rank is alone, or the ranks' devices are connected (DeviceCollective). They
// have the regions and the layout of the GradientBuffer, without the control section. The hosts sum
// the control section themselves.
//
// All calls enqueue work and wait for nothing, so backward goes on. A merge sees what bring()
// brought before it and what earlier merges summed. Device::apply() sees everything after finish().
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

  // Makes what backward has written so far within `range` of the region visible to later merges.
  // `range`: gradients and statistics only.
  virtual Status bring(uint32_t region, const ElementRange& range) = 0;

  // The addition of add_into(). `range`: gradients and statistics only.
  virtual Status merge(const RegionMerge& merge, const ElementRange& range) = 0;

  // Makes everything requested so far visible to all later work of the device.
  virtual Status finish() = 0;

  // A step begins in which this rank computes so many slots; none is done yet. Called before the
  // rank's Collectives hear of the step. No region moves until the next call.
  virtual void begin_step(uint32_t /*slots*/) {}

  // The device's progress, for heartbeats. count(): everything requested so far belongs to the
  // first `buckets` buckets; enqueued like the rest, so it counts once the device has come to it.
  // has_seen(): the host has seen that so many are done. The defaults count nothing.
  virtual Status count(uint32_t /*buckets*/) { return Status::ok(); }
  virtual void has_seen(uint32_t /*buckets*/) {}
};

}  // namespace lockstep
