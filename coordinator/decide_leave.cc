// A member is done, was stopped, or failed. It waits for the answer before it leaves.
#include <algorithm>

#include "comm/base/status.h"
#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// The member's generation broke under it; what broke it is better known from elsewhere.
bool is_consequence(Code code) {
  return code == Code::kAborted || code == Code::kUnavailable || code == Code::kTimeout;
}

Reason failed(Turn& turn, Member& member, const wire::Leave& message) {
  const auto code = message.code() <= static_cast<uint32_t>(Code::kTimeout)
                        ? static_cast<Code>(message.code())
                        : Code::kInternal;
  if (is_consequence(code)) {
    member.trouble_ms = turn.now_ms;
    member.trouble = message.message();
    turn.note(LogLine::Level::kInfo, "member_in_trouble",
              describe(turn.state, member) + ": " + message.message());
    return Reason::kSuspected;
  }
  int exit = exit_code(Status(code, ""));
  if (exit == 0 || exit == 75) exit = 70;  // a failure is never a success
  end_run(turn, exit,
          describe(turn.state, member) + ": " + message.message() +
              (turn.state.checkpoints.empty() ? "" : "; " + what_remains(turn)));
  return Reason::kEndedWorkerFailed;
}

}  // namespace

Reason on_leave(Turn& turn, Member& member, const wire::Leave& message) {
  State& state = turn.state;
  if (message.reason() == wire::Leave::FAILED) return failed(turn, member, message);
  if (member.state == MemberState::kLeft) return Reason::kAlreadyCounted;
  const Step step = message.applied().step();
  if (message.reason() == wire::Leave::FINISHED && step != turn.options.total_steps) {
    end_run(turn, 70,
            describe(state, member) + " finished at step " + std::to_string(step) + " of " +
                std::to_string(turn.options.total_steps) + "; " + what_remains(turn));
    return Reason::kEndedWorkerFailed;
  }
  member.state = MemberState::kLeft;
  member.leave = message;
  member.step = std::max(member.step, step);
  if (member.id == state.writer && !state.end_ms) state.end_ms = turn.now_ms;
  return finish_if_all_left(turn, Reason::kLeft);
}

Reason on_suspect(Turn& turn, Member& member, const wire::PeerSuspect& message) {
  const Member* suspect = turn.find(message.member());
  const std::string who = suspect == nullptr ? "an unknown member" : describe(turn.state, *suspect);
  if (member.trouble_ms == 0) member.trouble_ms = turn.now_ms;
  member.trouble = "lost " + who + ": " + message.what();
  turn.note(LogLine::Level::kInfo, "peer_suspected",
            describe(turn.state, member) + " " + member.trouble);
  return Reason::kSuspected;
}

Reason on_stop(Turn& turn, const std::string& why) {
  State& state = turn.state;
  if (state.run == RunState::kEnded) return Reason::kIgnored;
  if (state.stop_ms) return Reason::kAlreadyCounted;
  state.stop_ms = turn.now_ms;
  state.stop_reason = why;
  turn.note(LogLine::Level::kInfo, "stop_requested", "the run is to stop: " + why);
  if (state.run != RunState::kStarted) {
    end_run(turn, 75, "stopped before training began (" + why + "); " + what_remains(turn));
    return Reason::kEndedStopped;
  }
  wire::Envelope envelope;
  envelope.mutable_stop()->set_reason(why);
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    if (member.state != MemberState::kLeft) turn.send(member.connection, envelope);
  }
  return Reason::kStopRequested;
}

}  // namespace lockstep::coordinator
