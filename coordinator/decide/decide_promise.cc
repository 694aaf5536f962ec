// A member answers prepare: nothing of an older generation takes effect after it.
#include <algorithm>

#include "comm/base/planted_bug.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

bool is_possible(const Turn& turn, const wire::Promise& message) {
  if (message.lived() >= message.generation()) return false;
  if (!is_valid(message.applied(), turn.options) || !is_valid(message.since(), turn.options)) {
    return false;
  }
  if (message.ends_at() != 0 && message.ends_at() != message.applied().step()) return false;
  return !message.has_state() || message.lived() == 0 ||
         message.since().step() <= message.applied().step();
}

}  // namespace

Reason on_promise(Turn& turn, Member& member, const wire::Promise& message) {
  State& state = turn.state;
  if (message.generation() > state.last_generation) return Reason::kRefusedFuture;
  const bool is_present =
      message.generation() == state.generation || LOCKSTEP_BUG(kGenerationNotChecked);
  if (!is_open(state.run) || !is_present || !is_listed(state, member)) {
    push_present(turn, member);
    return Reason::kRefusedStaleGeneration;
  }
  if (state.run == RunState::kStarted) {
    push_present(turn, member);  // it did not see the start
    return Reason::kAlreadyCounted;
  }
  if (member.state == MemberState::kPromised) return Reason::kAlreadyCounted;
  if (!is_possible(turn, message)) return Reason::kRefusedMalformed;
  member.state = MemberState::kPromised;
  Answer answer;
  answer.lived = message.lived();
  answer.since = from_wire(message.since());
  if (message.has_state()) answer.applied = from_wire(message.applied());
  answer.is_end = message.has_state() && message.ends_at() != 0;
  member.answer = answer;
  member.lived = std::max(member.lived, answer.lived);
  if (LOCKSTEP_BUG(kStartBeforeAllAnswered)) {
    for (MemberId id : state.ranks)
      if (!turn.at(id).answer) turn.at(id).answer.emplace(), turn.at(id).state = member.state;
  }
  return start_if_ready(turn, Reason::kPromised);
}

}  // namespace lockstep::coordinator
