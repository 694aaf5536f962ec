// Sends the boundary state from one member to the members that lack it, through the Collective of
// the new generation. All members take part; one sends, and the members that lack the state keep
// it.
//
//   header   resume point, evaluations, numbers of bytes, hashes   one broadcast
//   table    of the tensors (comm/run/checkpoint/state_table.h) in chunks
//   proof    of the steps that the state has seen                  one broadcast
//   tensors  in the order of the table, in chunks                  the rest
//
// The receiver needs no state of its own. It takes its memory by the table, tensor by tensor as
// their bytes come. Whether the state fits its model shows when the engine installs the state.
//
// INVARIANTS
//  T1 A receiver's own state is untouched until everything has arrived and its hash is right.
//     Then it is installed as a whole, or not at all.
//  T2 If one member fails, its generation closes and the calls of the others end with kAborted.
//
// Errors: kAborted from the Collective; kInternal if the received bytes differ from the sent ones,
// or if the table is malformed. kNoMemory if a receiver has none for the state.
// Thread-safety: free functions; as the Collective's operations.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/collective.h"
#include "comm/run/checkpoint/held_state.h"
#include "comm/run/checkpoint/step_proof.h"
#include "comm/run/evaluation/eval_track.h"

namespace lockstep {

// The header's description of the bytes.
struct StateOrigin {
  ResumePoint at;
  std::string resumed_from;  // checkpoint that the lineage's state began with; empty: fresh
  StepProof proof;           // of the steps that the state has seen
  EvalTrack track = {};      // of the evaluations that the state has seen
};

struct ReceivedState {
  StateOrigin origin;
  HeldState state;
};

// For the sender.
Status send_state(Collective& collective, Generation generation, const StateOrigin& origin,
                  std::span<const StateTensor> state);

// For members that lack the state.
Result<ReceivedState> receive_state(Collective& collective, Generation generation, uint32_t root);

// For all other members.
Status pass_state(Collective& collective, Generation generation, uint32_t root);

}  // namespace lockstep
