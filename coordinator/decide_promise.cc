// A member answers prepare: nothing of an older generation takes effect after it.
#include <algorithm>

#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {

// The fence has passed: this is the newest generation, and the member belongs to it.
Reason on_promise(Turn& turn, Member& member, const wire::Promise& message) {
  State& state = turn.state;
  if (state.run == RunState::kStarted) {
    push_present(turn, member);  // it did not see the start
    return Reason::kAlreadyCounted;
  }
  if (member.state == MemberState::kPromised) return Reason::kAlreadyCounted;
  member.state = MemberState::kPromised;
  if (message.has_state()) {
    if (message.applied().phase() > static_cast<uint32_t>(Phase::kEnd)) {
      member.state = MemberState::kRegistered;
      return Reason::kRefusedMalformed;
    }
    member.promised =
        ResumePoint{message.applied().step(), static_cast<Phase>(message.applied().phase())};
  }
  const bool all = std::all_of(state.ranks.begin(), state.ranks.end(), [&](MemberId id) {
    return state.members.at(id).state == MemberState::kPromised;
  });
  return all ? start_generation(turn) : Reason::kPromised;
}

}  // namespace lockstep::coordinator
