// decide(now, state, event, options) → (state', actions, reason): the heart of the coordinator.
//
// A pure function: no I/O, no clock, no random number, no allocation of identity outside the state
// (member ids come from a counter in it). The same code runs in production and in tests that feed
// it histories. PROTOCOL.md is its specification; state.h lists states, messages and invariants,
// which are asserted after every call.
//
// Split by what happens:
//   decide.cc         from an event to the function that judges it; fences
//   decide_register   who comes; decide_agent: what agents prove; decide_command: what people want
//   gather            when the first generation of a term is prepared
//   judge             who is taken for dead without a proof: leases, brake, suspicion
//   hang              who is behind when nothing goes on
//   regroup           what follows a death: the next generation, the next term, or the end
//   generation        prepare and start; resume_point: from where, and can every step be proven
//   poison            a step that kills whoever computes it
//   planned           joins and leaves without a pause
//   judge_checks      members that hold or compute something else than the others
//   decide_records, decide_checkpoint, decide_leave, decide_promise, decide_tick
//   finish            ends; begin_state, take_over: begins a term, with a generation that is alive
//
// Thread-safety: pure.
#pragma once

#include <cstdint>

#include "coordinator/decide/decision.h"
#include "coordinator/state/event.h"
#include "coordinator/state/options.h"

namespace lockstep::coordinator {

// `now_ms`: monotonic, never less than in an earlier call. The state is consumed: move it in.
Decision decide(int64_t now_ms, State state, const Event& event, const Options& options);

}  // namespace lockstep::coordinator
