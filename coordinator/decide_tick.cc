// Deadlines, in the order in which they explain most: a proven cause before a suspected one.
#include <algorithm>
#include <optional>

#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// Ticks come every 100 ms. A pause this long means that we were stopped, not that everyone else
// was: what they sent meanwhile is still in our sockets.
constexpr int64_t kAsleepMs = 2'000;

bool has_agent(const State& state, const std::string& node) {
  return std::any_of(state.agents.begin(), state.agents.end(),
                     [&](const auto& entry) { return entry.second.node == node; });
}

bool can_die(const Member& member) {
  return member.state != MemberState::kDead && member.state != MemberState::kLeft;
}

void forgive(Turn& turn, int64_t asleep_ms) {
  State& state = turn.state;
  for (auto& [id, member] : state.members) {
    member.heard_ms += asleep_ms;
    member.disconnected_ms += asleep_ms;
    if (member.trouble_ms != 0) member.trouble_ms += asleep_ms;
  }
  for (auto& [node, since_ms] : state.lost_agents) since_ms += asleep_ms;
  state.prepared_ms += asleep_ms;
  state.started_ms += asleep_ms;
}

std::optional<Reason> judge_members(Turn& turn) {
  const Options& options = turn.options;
  for (auto& [id, member] : turn.state.members) {
    if (!can_die(member) || member.connection != 0) continue;
    const int64_t window_ms =
        has_agent(turn.state, member.node) ? options.proof_ms : options.reconnect_ms;
    if (turn.now_ms - member.disconnected_ms > window_ms) {
      return on_death(
          turn, member,
          "closed its connection and did not come back (" + member.disconnected_why + ")",
          Reason::kEndedDisconnect, 70);
    }
  }
  for (const auto& [node, since_ms] : turn.state.lost_agents) {
    if (turn.now_ms - since_ms <= options.proof_ms) continue;
    end_run(turn, 70, "the agent of node " + node + " is gone; " + what_remains(turn));
    return Reason::kEndedDisconnect;
  }
  for (auto& [id, member] : turn.state.members) {
    if (!can_die(member)) continue;
    if (turn.now_ms - member.heard_ms > options.lease_ms) {
      return on_death(turn, member,
                      "was silent for " + std::to_string(turn.now_ms - member.heard_ms) +
                          " ms (cluster.lease_s is " + std::to_string(options.lease_ms / 1000) +
                          ")",
                      Reason::kEndedLease, 70);
    }
    if (member.trouble_ms != 0 && turn.now_ms - member.trouble_ms > options.proof_ms) {
      end_run(turn, 70,
              describe(turn.state, member) + ": " + member.trouble + ", and nobody died; " +
                  what_remains(turn));
      return Reason::kEndedSuspicion;
    }
  }
  return std::nullopt;
}

Reason missing_workers(Turn& turn) {
  std::string present;
  uint32_t count = 0;
  for (const auto& [id, member] : turn.state.members) {
    if (member.state == MemberState::kDead) continue;
    ++count;
    present += (present.empty() ? "" : ", ") + describe(turn.state, member);
  }
  std::string agents;
  for (const auto& [connection, agent] : turn.state.agents) {
    agents += (agents.empty() ? "" : ", ") + agent.node + " (" + std::to_string(agent.workers) +
              " workers)";
  }
  const uint32_t missing = turn.options.workers - count;
  end_run(
      turn, 70,
      std::to_string(missing) + " of " + std::to_string(turn.options.workers) +
          " workers did not register within " +
          std::to_string(turn.options.start_timeout_ms / 1000) +
          " s (cluster.start_timeout_s). Registered: " + (present.empty() ? "nobody" : present) +
          ". Agents: " + (agents.empty() ? "none" : agents) +
          ". See the logs of the missing workers in " + turn.options.run_dir + "/logs");
  return Reason::kEndedMissingWorkers;
}

// Who has not promised is out; the rest goes on if it is enough.
Reason evict_unpromised(Turn& turn) {
  State& state = turn.state;
  std::string names;
  uint32_t left = 0;
  for (MemberId id : state.ranks) {
    Member& member = state.members.at(id);
    if (member.state == MemberState::kPromised) {
      ++left;
      continue;
    }
    names += (names.empty() ? "" : ", ") + describe(state, member);
    wire::Envelope envelope;
    envelope.mutable_evict()->set_reason("no answer to prepare within " +
                                         std::to_string(turn.options.prepare_timeout_ms) + " ms");
    turn.send(member.connection, std::move(envelope));
    member.state = MemberState::kDead;
  }
  turn.note(LogLine::Level::kWarn, "members_evicted",
            names + " did not answer to prepare of generation " + std::to_string(state.generation));
  if (left < std::max(1u, turn.options.min_workers)) {
    end_run(turn, 70,
            names + " did not answer to prepare within " +
                std::to_string(turn.options.prepare_timeout_ms / 1000) + " s; " +
                what_remains(turn));
    return Reason::kEndedUnpromised;
  }
  prepare_generation(turn, names + " did not answer");
  return Reason::kEvictedUnpromised;
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
                " s (cluster.grace_s), the steps since the last checkpoint are lost; " +
                what_remains(turn));
    return Reason::kEndedGracePassed;
  }
  // Before that the others wait for the writer, whose last checkpoint may take its time as long as
  // its heartbeats come.
  if (state.end_ms && turn.now_ms - *state.end_ms > options.end_timeout_ms) {
    end_run(turn, 70,
            "the writer was done, and " + not_left(state) + " did not leave within " +
                std::to_string(options.end_timeout_ms / 1000) + " s; " + what_remains(turn));
    return Reason::kEndedLeaveTimeout;
  }
  return std::nullopt;
}

}  // namespace

Reason on_tick(Turn& turn) {
  State& state = turn.state;
  if (state.run == RunState::kEnded) return Reason::kNothingDue;
  const int64_t pause_ms = turn.now_ms - state.last_tick_ms;
  state.last_tick_ms = turn.now_ms;
  if (pause_ms > kAsleepMs) {
    forgive(turn, pause_ms);
    turn.log(LogLine::Level::kWarn, "clock_jumped",
             "the coordinator was not running for " + std::to_string(pause_ms) +
                 " ms; nobody is judged for that time");
    return Reason::kClockJumped;
  }
  if (const auto reason = judge_members(turn)) return *reason;
  if (const auto reason = judge_endings(turn)) return *reason;
  if (state.run == RunState::kGathering &&
      turn.now_ms - state.started_ms > turn.options.start_timeout_ms) {
    return missing_workers(turn);
  }
  if (state.run == RunState::kPrepared &&
      turn.now_ms - state.prepared_ms > turn.options.prepare_timeout_ms) {
    return evict_unpromised(turn);
  }
  return Reason::kNothingDue;
}

Reason on_heartbeat(Turn& turn, Member& member, Generation generation,
                    const wire::Heartbeat& message) {
  // It proves that the process lives, whatever it knows; its step counts only in the present.
  if (turn.state.run != RunState::kStarted || generation != turn.state.generation) {
    return Reason::kHeard;
  }
  if (message.step() >= member.step && message.phase() <= static_cast<uint32_t>(Phase::kEnd)) {
    member.step = message.step();
    member.phase = static_cast<Phase>(message.phase());
  }
  return Reason::kHeard;
}

}  // namespace lockstep::coordinator
