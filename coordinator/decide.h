// decide(now, state, event, options) → (state', actions, reason): the heart of the coordinator.
//
// A pure function: no I/O, no clock, no random number, no allocation of identity outside the state
// (member ids come from a counter in it). The same code runs in production and in tests that feed
// it histories. PROTOCOL.md is its specification; state.h lists states, messages and invariants,
// which are asserted after every call.
//
// Split by what happened: decide_register, _promise, _leave, _death, _tick, _records, _checkpoint,
// _eval, _stop; generation.cc prepares and starts, finish.cc ends.
//
// In this version a death ends the run with a report; the next generation after a death takes the
// place of that one call (decide_death.cc).
//
// Thread-safety: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/action.h"
#include "coordinator/event.h"
#include "coordinator/options.h"
#include "coordinator/reason.h"
#include "coordinator/state.h"

namespace lockstep::coordinator {

struct Decision {
  State state;
  std::vector<Action> actions;
  Reason reason = Reason::kIgnored;
};

// `now_ms`: monotonic, never less than in an earlier call. The state is consumed: move it in.
Decision decide(int64_t now_ms, State state, const Event& event, const Options& options);

}  // namespace lockstep::coordinator
