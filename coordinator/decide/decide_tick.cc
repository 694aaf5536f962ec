// Deadlines, in the order in which they explain most: a proven cause before a suspected one.
#include <algorithm>
#include <optional>

#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// Ticks come every 100 ms. A pause this long, or of half a lease, means that we were stopped, and
// no other process: messages of that time are still in our sockets.
constexpr int64_t kAsleepMs = 2'000;

// Moves moments by the length of the pause, but to now at most. Messages between the end of the
// pause and this tick already bear the present time. A moment beyond now would make a worker that
// stops soon after look alive for the whole pause again.
void forgive(Turn& turn, int64_t asleep_ms) {
  State& state = turn.state;
  const auto move = [&](int64_t& since_ms) {
    since_ms = std::min(since_ms + asleep_ms, turn.now_ms);
  };
  for (auto& [id, member] : state.members) {
    move(member.heard_ms);
    move(member.disconnected_ms);
    move(member.dead_ms);
  }
  for (auto& [connection, agent] : state.agents) move(agent.since_ms);
  for (auto* since_ms : {&state.brake_ms, &state.lost_ms, &state.stop_ms, &state.end_ms}) {
    if (*since_ms) move(**since_ms);
  }
  if (state.suspicion) move(state.suspicion->since_ms);
  for (auto& [at, check] : state.pending_checks) move(check.since_ms);
  for (auto& [name, written] : state.written) move(written.since_ms);
  if (state.gathered_ms != 0) move(state.gathered_ms);
  for (auto* since_ms :
       {&state.prepared_ms, &state.progress_ms, &state.front_ms, &state.started_ms}) {
    move(*since_ms);
  }
}

std::string not_left(const State& state) {
  std::string names;
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    if (member.state == MemberState::kLeft) continue;
    names += (names.empty() ? "" : ", ") + describe(state, member);
  }
  return names;
}

std::optional<Reason> judge_endings(Turn& turn) {
  State& state = turn.state;
  const Options& options = turn.options;
  if (state.stop_ms && turn.now_ms - *state.stop_ms > options.grace_ms) {
    end_run(turn, 70,
            "the workers did not stop within " + std::to_string(options.grace_ms / 1000) +
                " s (cluster.grace_s), " + what_is_lost(turn) + "; " + what_remains(turn));
    return Reason::kEndedGracePassed;
  }
  // Before that the others wait for the writer, whose last checkpoint may take its time as long as
  // its heartbeats come.
  if (state.end_ms && turn.now_ms - *state.end_ms > options.end_timeout_ms) {
    const std::string names = not_left(state);
    end_run(turn, 70,
            "the writer was done, and " +
                (names.empty() ? "nobody told of step " + std::to_string(state.completed + 1)
                               : names + " did not leave") +
                " within " + std::to_string(options.end_timeout_ms / 1000) + " s; " +
                what_remains(turn));
    return Reason::kEndedLeaveTimeout;
  }
  return std::nullopt;
}

// The state is lost, and no process that could have said whether a worker comes has said so in
// time.
std::optional<Reason> judge_loss(Turn& turn) {
  const State& state = turn.state;
  const bool is_told_more =
      std::any_of(state.members.begin(), state.members.end(),
                  [&](const auto& entry) { return is_about_to_tell(state, entry.second); });
  const int64_t wait_ms = turn.options.lease_ms + (is_told_more ? kLastWordsMs : 0);
  if (!state.lost_ms || turn.now_ms - *state.lost_ms <= wait_ms) return std::nullopt;
  return total_loss(turn, "all workers died", 70);
}

// The members of a generation that an earlier coordinator prepared have closed the one before.
std::optional<Reason> judge_interruption(Turn& turn) {
  State& state = turn.state;
  if (!state.is_interrupted) return std::nullopt;
  state.is_interrupted = false;
  if (state.run != RunState::kStarted) return std::nullopt;
  return regroup(turn, "the coordinator was started again while a generation was prepared", 70);
}

}  // namespace

Reason on_tick(Turn& turn) {
  State& state = turn.state;
  if (state.run == RunState::kEnded || state.run == RunState::kTermEnded) {
    return Reason::kNothingDue;
  }
  const int64_t pause_ms = turn.now_ms - state.last_tick_ms;
  state.last_tick_ms = turn.now_ms;
  if (pause_ms > std::min(kAsleepMs, turn.options.lease_ms / 2)) {
    forgive(turn, pause_ms);
    turn.log(LogLine::Level::kWarn, "clock_jumped",
             "the coordinator was not running for " + std::to_string(pause_ms) +
                 " ms; that time counts against no worker");
    return Reason::kClockJumped;
  }
  kill_left_over(turn);
  look_for_manifests(turn);
  if (const auto reason = evict_expelled(turn)) return *reason;
  if (const auto reason = judge_interruption(turn)) return *reason;
  if (const auto reason = judge_members(turn)) return *reason;
  if (const auto reason = judge_suspicion(turn)) return *reason;
  if (const auto reason = judge_checks(turn)) return *reason;
  if (const auto reason = judge_hang(turn)) return *reason;
  if (const auto reason = judge_loss(turn)) return *reason;
  if (const auto reason = judge_endings(turn)) return *reason;
  if (const auto reason = judge_gathering(turn)) return *reason;
  if (const Reason reason = start_if_ready(turn, Reason::kNothingDue);
      reason != Reason::kNothingDue) {
    return reason;
  }
  if (const auto reason = judge_unpromised(turn)) return *reason;
  judge_pace(turn);
  state.change_due = true;  // what stood against a change may have passed
  return Reason::kNothingDue;
}

Reason on_heartbeat(Turn& turn, Member& member, Generation generation,
                    const wire::Heartbeat& message) {
  note_pause(turn, member, message.paused());
  if (turn.state.run == RunState::kPrepared && generation == turn.state.source_generation &&
      message.step() >= member.step && is_phase(message.phase()))
    member.phase = static_cast<Phase>(message.phase());
  // It proves that the process lives, whatever it knows; its step counts only in the present.
  if (turn.state.run != RunState::kStarted || generation != turn.state.generation ||
      message.step() > turn.options.total_steps) {
    return Reason::kHeard;
  }
  if (message.step() >= member.step && is_phase(message.phase())) {
    member.step = message.step();
    member.phase = static_cast<Phase>(message.phase());
    member.enqueued = message.enqueued();
    note_progress(turn, member, {message.step(), member.phase, message.bucket()});
  }
  return Reason::kHeard;
}

}  // namespace lockstep::coordinator
