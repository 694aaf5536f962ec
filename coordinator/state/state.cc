#include "coordinator/state/state.h"

namespace lockstep::coordinator {

const char* run_state_name(RunState state) {
  switch (state) {
    case RunState::kGathering:
      return "gathering";
    case RunState::kPrepared:
      return "prepared";
    case RunState::kStarted:
      return "training";
    case RunState::kTermEnded:
      return "restarting";
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
    case MemberState::kGone:
      return "gone";
    case MemberState::kDead:
      return "dead";
  }
  return "unknown";
}

}  // namespace lockstep::coordinator
