// Proof and suspicion of death, and what follows.
#include <cstring>

#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// Exit codes that a process chose to say what is wrong; anything else is an accident.
bool is_verdict(int exit_code) {
  return exit_code == 64 || exit_code == 65 || exit_code == 66 || exit_code == 78;
}

std::string cause_of(const wire::WorkerExit& message) {
  std::string cause;
  if (message.signal() != 0) {
    const char* name = sigabbrev_np(message.signal());
    cause = "was killed by signal " + std::to_string(message.signal()) +
            (name == nullptr ? "" : " (SIG" + std::string(name) + ")");
  } else {
    cause = "exited with code " + std::to_string(message.exit_code());
  }
  return cause;
}

std::string with_last_words(std::string text, const wire::WorkerExit& message) {
  if (!message.last_words().empty()) text += "\nits last words:\n" + message.last_words();
  return text;
}

}  // namespace

Reason on_death(Turn& turn, Member& member, const std::string& cause, Reason reason, int code) {
  const std::string who = describe(turn.state, member);
  const Step step = member.step;
  member.state = MemberState::kDead;
  turn.note(LogLine::Level::kInfo, "member_died", who + " " + cause);
  const size_t line_end = cause.find('\n');
  const std::string what = cause.substr(0, line_end);
  const std::string words = line_end == std::string::npos ? "" : cause.substr(line_end);
  end_run(
      turn, code,
      who + " " + what + " after step " + std::to_string(step) + "; " + what_remains(turn) + words);
  return reason;
}

Reason on_worker_exit(Turn& turn, const wire::WorkerExit& message) {
  State& state = turn.state;
  Member* member = message.member() != 0 ? turn.find(message.member()) : nullptr;
  if (member == nullptr) {
    for (auto& [id, other] : state.members) {
      if (other.pid == message.pid() && other.state != MemberState::kDead) member = &other;
    }
  }
  const int code = is_verdict(message.exit_code()) ? message.exit_code() : 70;
  if (member == nullptr) {
    if (state.run == RunState::kStarted) return Reason::kIgnored;  // not of this generation
    end_run(turn, code,
            with_last_words("a worker (pid " + std::to_string(message.pid()) + ") " +
                                cause_of(message) + " before it registered",
                            message));
    return Reason::kEndedDeath;
  }
  // Who has left may go; who is dead cannot die again.
  if (member->state == MemberState::kLeft || member->state == MemberState::kDead) {
    return Reason::kIgnored;
  }
  return on_death(turn, *member, with_last_words(cause_of(message), message), Reason::kEndedDeath,
                  code);
}

Reason on_closed(Turn& turn, const ConnectionClosed& event) {
  State& state = turn.state;
  if (const auto agent = state.agents.find(event.connection); agent != state.agents.end()) {
    if (state.run != RunState::kEnded) state.lost_agents[agent->second.node] = turn.now_ms;
    state.agents.erase(agent);
    return Reason::kDisconnected;
  }
  Member* member = turn.member_of(event.connection);
  state.by_connection.erase(event.connection);
  if (member == nullptr) return Reason::kIgnored;
  member->connection = 0;
  member->disconnected_ms = turn.now_ms;
  member->disconnected_why = event.why;
  return Reason::kDisconnected;
}

}  // namespace lockstep::coordinator
