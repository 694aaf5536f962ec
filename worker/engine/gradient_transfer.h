// Brings a slot's gradients and statistics from where backward wrote them to the region that the
// Collective reads. If both are the same memory there is no GradientTransfer.
//
// Thread-safety: one thread at a time calls start(), in the order in which backward wrote. One
// thread at a time calls wait(); it may be another thread.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

class GradientTransfer {
 public:
  virtual ~GradientTransfer() = default;

  // Starts to bring what backward has written so far within `range` to `region`, and returns at
  // once. `ticket` is the caller's name for the transfer. The caller may use it again after
  // wait(ticket).
  virtual void start(float* region, const ElementRange& range, uint32_t ticket) = 0;

  // Waits until the transfer of `ticket` has arrived. Also returns errors of start().
  virtual Status wait(uint32_t ticket) = 0;
};

}  // namespace lockstep
