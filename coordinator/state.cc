#include "coordinator/state.h"

namespace lockstep::coordinator {

const char* run_state_name(RunState state) {
  switch (state) {
    case RunState::kGathering:
      return "gathering";
    case RunState::kPrepared:
      return "prepared";
    case RunState::kStarted:
      return "training";
    case RunState::kEnded:
      return "ended";
  }
  return "unknown";
}

const char* member_state_name(MemberState state) {
  switch (state) {
    case MemberState::kRegistered:
      return "registered";
    case MemberState::kPromised:
      return "promised";
    case MemberState::kTraining:
      return "training";
    case MemberState::kLeft:
      return "left";
    case MemberState::kDead:
      return "dead";
  }
  return "unknown";
}

State begin_state(const Beginning& beginning, int64_t now_ms) {
  State state;
  state.run_id = beginning.run_id;
  state.term = beginning.term;
  state.next_member = beginning.next_member;
  state.generation = beginning.generation;
  state.base = beginning.base;
  state.base_checkpoint = beginning.base_checkpoint;
  state.resume = beginning.base;
  state.completed = beginning.base.step;
  state.evals = beginning.evals;
  state.checkpoints = beginning.checkpoints;
  state.stray = beginning.stray;
  state.is_identity_stored = beginning.is_identity_stored;
  state.started_ms = now_ms;
  state.last_tick_ms = now_ms;
  return state;
}

}  // namespace lockstep::coordinator
