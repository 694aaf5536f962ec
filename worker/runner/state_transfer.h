// The boundary state from one member to those that lack it, through the Collective of the new
// generation: all members take part, one sends, who needs it keeps it.
//
//   header   resume point, number of bytes, hash of it all       one broadcast
//   tensors  in the order of Engine::state(), in chunks          the rest
//
// INVARIANTS
//  T1 A receiver's own state is untouched until everything has arrived and its hash is right.
//  T2 Where one member fails, its generation is closed, and the others' calls end with kAborted.
//
// Errors: kAborted from the Collective; kInternal when the bytes that arrived are not those that
// were sent, or the members' tensors are not the same.
// Thread-safety: free functions; as the Collective's operations.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"
#include "coordinator/checkpoint/state_tensor.h"

namespace lockstep {

// What the bytes are, beside the bytes.
struct StateOrigin {
  ResumePoint at;
  std::string resumed_from;  // checkpoint that the lineage's state began with; empty: fresh
};

struct ReceivedState {
  StateOrigin origin;
  std::vector<std::vector<std::byte>> tensors;  // as Engine::state() lists them

  uint64_t bytes() const;
  // REQUIRES: the same list that it was received for.
  void install(std::span<const StateTensor> state) const;
};

// The one that has it.
Status send_state(Collective& collective, Generation generation, const StateOrigin& origin,
                  std::span<const StateTensor> state);

// Those that need it. `state` is only measured.
Result<ReceivedState> receive_state(Collective& collective, Generation generation, uint32_t root,
                                    std::span<const StateTensor> state);

// Those that neither have to send nor need it.
Status pass_state(Collective& collective, Generation generation, uint32_t root,
                  std::span<const StateTensor> state);

}  // namespace lockstep
