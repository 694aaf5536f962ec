// A Collective over gradient buffers in device memory. all_reduce() only enqueues, after earlier
// work of the device. The host reads results after wait_for_sums().
//
// Thread-safety: as Collective says.
#pragma once

#include <functional>
#include <vector>

#include "comm/collectives/collective.h"

namespace lockstep {

// A generation, as the devices' connection needs it.
struct DeviceGeneration {
  Generation generation = 0;
  std::vector<MemberId> members;       // by rank
  std::vector<uint32_t> node_of_rank;  // 0, 0, ..., 1, 1, ...: ranks of a node are neighbours
  // The host's Collective, of the same generation and ranks. It outlives the DeviceCollective. The
  // messages that make the devices' connection travel over it, because its members are proven
  // already.
  Collective* control = nullptr;
  int deadline_ms = 0;
  // True if the generation was closed: every wait ends. Called on the waiting thread.
  std::function<bool()> is_closed = [] { return false; };
};

class DeviceCollective : public Collective {
 public:
  // Waits until all earlier all_reduce() calls of the step have run on the device, and returns
  // their hash (operations_hash.h). The sums may still be worthless, because a peer's abort lets
  // operations return as if they had finished, and because ranks may have been in different
  // operations. So no rank applies them before every rank has agreed: by an operation of the host's
  // Collective that each rank begins after its own wait, with Tag::device_operations. kAborted if
  // the generation was closed meanwhile or the devices' connection failed.
  virtual Result<uint64_t> wait_for_sums() = 0;
};

}  // namespace lockstep
