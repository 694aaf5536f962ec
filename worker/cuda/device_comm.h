// The connection of this worker's device to the devices of its peers, from generation to
// generation. DeviceModule makes it. Like DeviceModule, it is an interface of plain values.
//
// INVARIANTS
//  D1 The connect() of a newer generation ends the work that an older generation left unfinished on
//     the device, before it connects. The destructor ends it for a worker that leaves, whether its
//     peers have closed or not: no rank applies a step to which this worker has not agreed
//     (step_reducer.h, R6).
//  D2 The destructor blocks as long as the device's library does. A process that must leave
//     meanwhile leaves with _exit, and frees no memory of the device.
//
// Thread-safety: one thread at a time.
#pragma once

#include <functional>
#include <memory>

#include "comm/base/status.h"
#include "comm/collectives/device_collective.h"

namespace lockstep {

struct DeviceCommOptions {
  bool is_exact = true;  // sums follow the reduction tree
  // A call into the device's library has not returned, long after its generation was closed.
  // Nothing can end the call, so this process has to end. Called once, on a thread of the
  // connection.
  std::function<void(const Status&)> on_stuck = {};
};

class DeviceComm {
 public:
  virtual ~DeviceComm() = default;

  // Connects the next generation. All members of the generation call it. Null: all members have
  // agreed that the host sums. Errors: kTimeout, kAborted
  // (closed meanwhile), kConfig, or kInternal with the text of the connection. REQUIRES: nothing
  // uses the Collectives of older generations any more.
  virtual Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) = 0;
};

}  // namespace lockstep
