// A Collective over gradient buffers in the memory of devices: all_reduce() only enqueues, behind
// what the device was told before, and what the host reads is read after wait_for_sums().
//
// Thread-safety: as Collective says.
#pragma once

#include <functional>
#include <vector>

#include "comm/collectives/collective.h"

namespace lockstep {

// A generation as the devices' connection sees it.
struct DeviceGeneration {
  Generation generation = 0;
  std::vector<MemberId> members;       // by rank
  std::vector<uint32_t> node_of_rank;  // 0, 0, ..., 1, 1, ...: ranks of a node are neighbours
  // The host's, of the same generation and ranks; it outlives the DeviceCollective. Whatever has to
  // be told to make the connection goes over it: who is in it is proven already.
  Collective* control = nullptr;
  int deadline_ms = 0;
  // The generation was closed: every wait ends. Asked from the thread that waits.
  std::function<bool()> is_closed = [] { return false; };
};

class DeviceCollective : public Collective {
 public:
  // Returns when the sums of every all_reduce() so far are in the device's memory. kAborted when
  // the generation was closed meanwhile; kInternal when ranks were in different operations, or the
  // devices' connection failed: the sums are worth nothing then, and must not be applied.
  virtual Status wait_for_sums() = 0;
};

}  // namespace lockstep
