// The invariants of state.h as assertions that stay on in release: a coordinator that breaks one
// stops before it can journal it.
//
// Thread-safety: pure functions.
#pragma once

#include "coordinator/decide/decision.h"
#include "coordinator/state/event.h"
#include "coordinator/state/options.h"

namespace lockstep::coordinator {

// What has to be remembered of a state to see that nothing went back. Small on purpose: the state
// itself is moved through decide().
struct Mark {
  Term term = 0;
  Generation generation = 0;
  Generation last_generation = 0;
  Generation source_generation = 0;
  MemberId next_member = 0;
  Step completed = 0;
  Step in_history = 0;
  RunState run = RunState::kGathering;
  // Of the member that the event came from; 0: of none
  MemberId member = 0;
  Step member_step = 0;
  uint64_t member_acked_batch = 0;
};

Mark mark_of(const State& state, const Event& event);

// Aborts the process when `decision`, reached from `before` by `event`, breaks I3, I4, I7 or
// S1 to S4.
void check_invariants(const Mark& before, const Event& event, const Decision& decision,
                      const Options& options);

}  // namespace lockstep::coordinator
