// The invariants of state.h as assertions, also in release builds. A coordinator that breaks one
// stops before it can journal the result.
//
// Thread-safety: pure functions.
#pragma once

#include "coordinator/decide/decide.h"
#include "coordinator/state/event.h"
#include "coordinator/state/options.h"

namespace lockstep::coordinator {

// The part of a state that shows whether something went back. It is small, because decide() takes
// the state itself by move.
struct StateMark {
  Term term = 0;
  Generation generation = 0;
  Generation last_generation = 0;
  Generation source_generation = 0;
  MemberId next_member = 0;
  Step completed = 0;
  Step in_history = 0;
  RunState run = RunState::kGathering;
  // The next three are of the member that sent the event; 0: no member sent it.
  MemberId member = 0;
  Step member_step = 0;
  uint64_t member_acked_batch = 0;
};

StateMark mark_of(const State& state, const Event& event);

// Aborts the process if `decision`, reached from `before` by `event`, breaks I3, I4, I7 or S1 to
// S4.
void check_invariants(const StateMark& before, const Event& event, const Decision& decision,
                      const Options& options);

}  // namespace lockstep::coordinator
