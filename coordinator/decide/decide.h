// decide(now, state, event, options) → (state', actions, reason): the heart of the coordinator.
//
// A pure function: no I/O, no clock, no random numbers, and member ids come from a counter in the
// state. The same code runs in production and in tests that feed it histories. Its specification
// is coordinator/PROTOCOL.md. state.h lists states, messages and invariants, which decide() asserts
// after every call.
//
// Where to look:
//   decide.cc         from an event to the function that judges it; fences
//   decide_register   registrations; decide_agent: proofs of agents; decide_command: commands
//   fit               what must be alike among workers: data, code, values, numerics, layout
//   gather            when to prepare the first generation of a term
//   judge             members that count as dead without a proof: leases, brake, suspicion
//   hang              evicts the slowest member when nothing goes on
//   regroup           after a death: the next generation, the next term, or the end
//   generation        prepares and starts; resume_point: from which step, and whether every step is
//                     provable
//   poison            a step that kills every process that computes it: samples, or the script
//   planned           joins and leaves without a pause
//   unfit             places whose GPU an agent finds unfit
//   expel             places that computed wrong
//   judge_checks      members that hold or compute something else than the others
//   decide_records, decide_checkpoint, decide_leave, decide_promise, decide_tick
//   finish            ends; begin_state, take_over: begins a term, with a generation that is alive
//
// Thread-safety: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/state/action.h"
#include "coordinator/state/event.h"
#include "coordinator/state/options.h"
#include "coordinator/state/reason.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

struct Decision {
  State state;
  std::vector<Action> actions;  // in this order
  Reason reason = Reason::kIgnored;
};

// `now_ms` is monotonic, never less than in an earlier call. Move the state in.
Decision decide(int64_t now_ms, State state, const Event& event, const Options& options);

}  // namespace lockstep::coordinator
