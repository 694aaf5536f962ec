// A member is done, was stopped, or failed. It waits for the answer before it leaves.
#include <algorithm>
#include <utility>

#include "comm/base/status.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

// Its connection, which nothing else closes from here on.
ConnectionId take_connection(Turn& turn, Member& member) {
  turn.state.by_connection.erase(member.connection);
  member.disconnected_ms = turn.now_ms;
  return std::exchange(member.connection, 0);
}

// The process has said its last word. Without an answer it would register again, as a new member
// that only fails again.
void let_go(Turn& turn, ConnectionId connection, int code, const std::string& what) {
  const State& state = turn.state;
  const bool is_over = state.run == RunState::kEnded;
  say_goodbye(turn, connection, is_over ? state.exit_code : code, is_over ? state.message : what);
  turn.actions.push_back(CloseConnection{connection});
}

Reason leave_failed(Turn& turn, Member& member, const wire::Leave& message) {
  const auto code = message.code() <= static_cast<uint32_t>(Code::kRaised)
                        ? static_cast<Code>(message.code())
                        : Code::kInternal;
  const State& state = turn.state;
  const int exit = exit_code(Status(code, ""));
  const auto [error, trace] = split_line(message.message());
  const std::string what =
      describe(state, member) + " failed after step " + std::to_string(member.step) + ": " + error;
  if (ends_the_run(turn, member, exit)) {
    end_run(turn, exit,
            describe(state, member) + ": " + error +
                (state.checkpoints.empty() ? "" : "; " + what_remains(turn)) + trace);
    return Reason::kEndedWorkerFailed;
  }
  Casualty casualty{describe(state, member), from_wire(message.in_hand()), {}, {}, {}};
  note_error(message, casualty);
  note_casualty(turn, std::move(casualty));
  if (const auto over = judge_raised(turn)) return *over;
  member.has_told = true;
  const ConnectionId connection = take_connection(turn, member);
  declare_dead(turn, member);
  const int verdict = is_verdict(exit) ? exit : 70;
  const Reason reason = after_deaths(turn, {member.id}, what, verdict);
  let_go(turn, connection, verdict, what);
  return reason;
}

}  // namespace

// The fence has passed: it speaks of the started generation, or it failed.
Reason on_leave(Turn& turn, Member& member, const wire::Leave& message) {
  State& state = turn.state;
  if (message.reason() == wire::Leave::FAILED) return leave_failed(turn, member, message);
  if (member.state == MemberState::kLeft) return Reason::kAlreadyCounted;
  if (!is_valid(message.applied(), turn.options)) return Reason::kRefusedMalformed;
  const Step step = message.applied().step();
  // With patience the run may end before its last step: judged when the reports of all are there.
  const bool may_end_early = turn.options.job.train().patience() > 0;
  const Step last = last_step(state, turn.options);
  if (message.reason() == wire::Leave::FINISHED && step != last && !may_end_early) {
    end_run(turn, 70,
            describe(state, member) + " finished at step " + std::to_string(step) + " of " +
                std::to_string(last) + "; " + what_remains(turn));
    return Reason::kEndedWorkerFailed;
  }
  member.state = MemberState::kLeft;
  member.leave = message;
  member.step = std::max(member.step, step);
  if (member.id == state.writer && !state.end_ms) state.end_ms = turn.now_ms;
  return finish_if_all_left(turn, Reason::kLeft);
}

Reason on_suspect(Turn& turn, Member& member, const wire::PeerSuspect& message) {
  State& state = turn.state;
  const Member* suspect = turn.find(message.member());
  const bool is_known =
      suspect != nullptr && suspect != &member && can_be_suspected(state, *suspect);
  const std::string what = describe(state, member) + " lost " +
                           (is_known ? describe(state, *suspect) : "a peer") + ": " +
                           message.what();
  if (!state.suspicion) state.suspicion = Suspicion{turn.now_ms, {}, what};
  MemberId& named = state.suspicion->named[member.id];
  if (is_known) named = suspect->id;
  turn.persist(EventEntry{state.generation, "peer_suspected", what});
  turn.log(LogLine::Level::kInfo, "peer_suspected", what + "; waiting for a proof of its death");
  return Reason::kSuspected;
}

void bid_farewell(Turn& turn, Member& member, const std::string& why) {
  // Before training begins all places are counted: its agent is to start another one.
  if (turn.state.source_generation == 0) member.farewell = kRunMeAgain;
  say_goodbye(turn, member.connection, member.farewell, why);
  member.state = MemberState::kGone;
  turn.state.waiting.erase(member.id);
  turn.state.experience.known.erase({member.node, member.pid});
  forget_process(turn.state, member);
}

void push_stop(Turn& turn, const Member& member) {
  if (!turn.state.stop_ms || member.state == MemberState::kLeft) return;
  wire::Envelope envelope;
  envelope.mutable_stop()->set_reason(turn.state.stop_reason);
  turn.send(member.connection, std::move(envelope));
}

Reason on_stop(Turn& turn, const std::string& why) {
  State& state = turn.state;
  if (state.run == RunState::kEnded || state.run == RunState::kTermEnded) return Reason::kIgnored;
  if (state.stop_ms && !state.is_shrinking) return Reason::kAlreadyCounted;
  state.is_shrinking = false;  // the coordinator's own stop becomes a requested one
  state.stop_ms = turn.now_ms;
  state.stop_reason = why;
  turn.persist(SettingEntry{kStopSetting, why.empty() ? "it was asked for" : why});
  turn.note(LogLine::Level::kInfo, "stop_requested", "the run is to stop: " + why);
  if (state.source_generation == 0) {
    end_run(turn, 75, "stopped before training began (" + why + "); " + what_remains(turn));
    return Reason::kEndedStopped;
  }
  if (state.lost_ms) return total_loss(turn, "all workers died", 70);
  // Members that wait for another start hear of the stop with that start.
  if (state.run == RunState::kStarted) {
    for (MemberId id : state.ranks) push_stop(turn, turn.at(id));
  }
  return Reason::kStopRequested;
}

}  // namespace lockstep::coordinator
