// Processes that are still there although the run does not count on them: stopped for good, or
// stuck. Each holds a place of its agent, so that no other worker gets it. The coordinator tells
// the agent to kill it, and the agent starts another one as after a crash. A process that wakes up
// in time and registers again is spared.
#include <algorithm>

#include "comm/base/planted_bug.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

bool has_registered(const State& state, const std::string& node, uint32_t pid) {
  return state.by_process.contains({node, pid});
}

void order_to_kill(Turn& turn, ConnectionId agent, uint32_t pid, const std::string& what) {
  wire::Envelope envelope;
  envelope.mutable_kill_worker()->set_pid(pid);
  envelope.mutable_kill_worker()->set_reason(what);
  turn.send(agent, std::move(envelope));
  turn.note(LogLine::Level::kWarn, "left_over_killed",
            what + ": its agent is told to kill it and to start another one");
}

// The process could have registered again since its agent and this coordinator know each other.
bool had_time(const Turn& turn, const Member& member, const KnownAgent& agent) {
  if (LOCKSTEP_BUG(kKilledAtOnce)) return true;
  return turn.now_ms - std::max(member.dead_ms, agent.since_ms) > turn.options.lease_ms;
}

void kill_dead(Turn& turn, Member& member) {
  const State& state = turn.state;
  if (member.has_exited || has_registered(state, member.node, member.pid)) {
    member.is_left_over = false;
    return;
  }
  for (const auto& [connection, agent] : state.agents) {
    if (agent.node != member.node || !had_time(turn, member, agent)) continue;
    const bool may_tell = turn.now_ms - member.dead_ms <= kLastWordsMs;
    if (may_tell && is_about_to_tell(state, member)) return;
    member.is_left_over = false;  // told once
    return order_to_kill(turn, connection, member.pid,
                         describe(state, member) + " was declared dead " +
                             std::to_string(turn.now_ms - member.dead_ms) +
                             " ms ago, but its process is still there");
  }
}

// A process that the term before knew has its lease, as within a term. Others may still load what
// they train.
int64_t patience_ms(const Turn& turn, const std::pair<std::string, uint32_t>& process) {
  const Experience& experience = turn.state.experience;
  if (!experience.known.contains(process)) return turn.options.start_timeout_ms;
  const int64_t words_ms = experience.hung.contains(process) ? kLastWordsMs : 0;
  return std::max(turn.options.lease_ms, words_ms);
}

// Kills processes of an earlier term or coordinator that have not registered since. A first start
// waits for all in its own way.
void kill_strangers(Turn& turn, ConnectionId connection, KnownAgent& agent) {
  const State& state = turn.state;
  std::erase_if(agent.awaited, [&](uint32_t pid) {
    return has_registered(state, agent.node, pid) || !agent.living.contains(pid);
  });
  const bool is_beginning = state.source_generation == 0 && is_first_start(turn);
  const int64_t waited_ms = turn.now_ms - agent.since_ms;
  if (is_beginning) return;
  std::erase_if(agent.awaited, [&](uint32_t pid) {
    if (waited_ms <= patience_ms(turn, {agent.node, pid})) return false;
    order_to_kill(turn, connection, pid,
                  "a worker of node " + agent.node + " (pid " + std::to_string(pid) +
                      ") is there but did not register within " + std::to_string(waited_ms) +
                      " ms");
    return true;
  });
}

}  // namespace

void note_living(Turn& turn, KnownAgent& agent) {
  for (auto& [id, member] : turn.state.members) {
    if (member.state != MemberState::kDead || member.has_exited || member.node != agent.node) {
      continue;
    }
    member.is_left_over = agent.living.contains(member.pid);
  }
  for (const uint32_t pid : agent.living) {
    if (!has_registered(turn.state, agent.node, pid)) agent.awaited.insert(pid);
  }
}

void kill_left_over(Turn& turn) {
  for (auto& [id, member] : turn.state.members) {
    if (member.is_left_over) kill_dead(turn, member);
  }
  for (auto& [connection, agent] : turn.state.agents) {
    if (!agent.awaited.empty()) kill_strangers(turn, connection, agent);
  }
}

}  // namespace lockstep::coordinator
