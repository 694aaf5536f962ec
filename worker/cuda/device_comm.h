// The connection of this worker's device to those of its peers, from generation to generation; an
// interface of plain values, as DeviceModule, which makes it.
//
// INVARIANTS
//  D1 What a generation left unfinished on the device is ended by the connect() of a newer one, and
//     not before: until then peers that have not closed theirs may still be reading.
//
// Thread-safety: one thread at a time.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "comm/collectives/device_collective.h"

namespace lockstep {

class DeviceComm {
 public:
  virtual ~DeviceComm() = default;

  // All members of the generation call it. kTimeout, kAborted (closed meanwhile), kConfig, or
  // kInternal with what the connection says. REQUIRES: Collectives of older ones are used no more.
  virtual Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) = 0;
};

}  // namespace lockstep
