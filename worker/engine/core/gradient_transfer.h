// Brings a slot's gradients and statistics from where backward wrote them to the region that the
// Collective reads, where these are two memories. Where they are one there is no GradientTransfer.
//
// Thread-safety: start() from one thread at a time, in the order of what backward wrote; wait()
// from one thread at a time, which may be another.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep {

class GradientTransfer {
 public:
  virtual ~GradientTransfer() = default;

  // Brings to `region` what has been written of `range` by now; returns at once. `ticket` is the
  // caller's name for it, and free again once it was waited for.
  virtual void start(float* region, const ElementRange& range, uint32_t ticket) = 0;

  // Until it is there. Errors: of start() too.
  virtual Status wait(uint32_t ticket) = 0;
};

}  // namespace lockstep
