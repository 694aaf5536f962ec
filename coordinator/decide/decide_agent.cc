// Handles agents' proofs about processes, and closed connections.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>

#include "comm/run/job/predictions.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

std::string cause_of(const wire::WorkerExit& message) {
  if (message.signal() == 0) return "exited with code " + std::to_string(message.exit_code());
  const char* name = sigabbrev_np(message.signal());
  return "was killed by signal " + std::to_string(message.signal()) +
         (name == nullptr ? "" : " (SIG" + std::string(name) + ")");
}

// The process ended because it was told to, or its exit code says what is wrong. The samples that
// it had begun to read are not at fault.
bool is_orderly(const wire::WorkerExit& message) {
  return message.signal() == 0 && (message.exit_code() == 0 || message.exit_code() == kRunMeAgain ||
                                   is_verdict(message.exit_code()));
}

std::string with_last_words(std::string text, const wire::WorkerExit& message) {
  if (!message.last_words().empty()) text += "\nits last words:\n" + message.last_words();
  return text;
}

// Members of a node that live, as far as is known.
std::vector<MemberId> living_on(const State& state, const std::string& node) {
  std::vector<MemberId> members;
  for (auto it = state.by_process.lower_bound({node, 0});
       it != state.by_process.end() && it->first.first == node; ++it) {
    members.push_back(it->second);
  }
  return members;
}

// An exit may be told again when its successor is here already, or before its agent hears that the
// node keeps no workers any more.
void expect_replacement(Turn& turn, const Place& place) {
  if (keeps_none(turn.state, place.node)) return;
  for (MemberId id : living_on(turn.state, place.node)) {
    if (turn.at(id).local_rank == place.local_rank) return;
  }
  turn.state.replacements.insert(place);
}

Member* member_of_exit(Turn& turn, const KnownAgent& agent, const wire::WorkerExit& message) {
  if (Member* member = turn.find(message.member())) return member;
  const auto is_it = [&](const Member& member) {
    return member.node == agent.node && member.pid == message.pid() &&
           !is_other_process(member.process, message.process());
  };
  const auto process = turn.state.by_process.find({agent.node, message.pid()});
  if (process != turn.state.by_process.end()) {
    Member* const member = turn.find(process->second);
    if (member != nullptr && is_it(*member)) return member;
  }
  // Declared dead before the proof came: the newest of that process.
  for (auto it = turn.state.members.rbegin(); it != turn.state.members.rend(); ++it) {
    if (is_it(it->second)) return &it->second;
  }
  return nullptr;
}

// A term that waits for its first workers has none, and no agent has one that may still come.
bool comes_nobody(const State& state) {
  return state.run == RunState::kGathering && state.by_process.empty() &&
         state.replacements.empty() &&
         std::all_of(state.agents.begin(), state.agents.end(),
                     [](const auto& e) { return e.second.living.empty(); });
}

std::string agent_name(const KnownAgent& agent, const wire::WorkerExit& message) {
  return "a worker of node " + agent.node + " (pid " + std::to_string(message.pid()) + ")";
}

// A later term knows of a hang what this one has noted.
Casualty casualty_of(Turn& turn, const KnownAgent& agent, const wire::WorkerExit& message,
                     const Member* member) {
  Casualty casualty{member == nullptr ? agent_name(agent, message) : describe(turn.state, *member),
                    from_wire(message.in_hand()),
                    {},
                    {},
                    {}};
  auto& hung = turn.state.experience.hung;
  if (const auto found = hung.find({agent.node, message.pid()}); found != hung.end()) {
    casualty.hang = std::move(found->second);
    casualty.who = casualty.hang->who;
    casualty.stood = message.last_words();
    hung.erase(found);
  }
  return casualty;
}

// A failed start becomes an event, because an earlier event has announced that start.
void tell_exit(Turn& turn, const wire::WorkerExit& message, const std::string& what) {
  const std::string next = message.will_restart() ? "; it is tried again" : "; the run goes on";
  if (message.pid() == 0)
    return turn.note(LogLine::Level::kWarn, "worker_not_started", what + next);
  turn.log(LogLine::Level::kInfo, "worker_exited", what + next);
}

Reason exit_of_stranger(Turn& turn, const KnownAgent& agent, const wire::WorkerExit& message) {
  State& state = turn.state;
  const bool never_was = message.pid() == 0;
  // An exit of the term before may be told again.
  const std::string when = is_first_start(turn) ? "" : " in term " + std::to_string(state.term);
  const std::string what =
      never_was
          ? "worker " + std::to_string(message.local_rank()) + " of node " + agent.node +
                " could not be started: " + message.last_words()
          : agent_name(agent, message) + " " + cause_of(message) + " before it registered" + when;
  const std::string whole = never_was ? what : with_last_words(what, message);
  const std::string& words = message.last_words();
  state.early_death =
      never_was || words.empty() ? what : what + ": " + words.substr(words.rfind('\n') + 1);
  if (message.will_restart()) expect_replacement(turn, {agent.node, message.local_rank()});
  if (state.source_generation == 0 && is_first_start(turn) && !message.will_restart()) {
    const int code = is_verdict(message.exit_code()) ? message.exit_code() : 70;
    end_run(turn, code, whole);
    return Reason::kEndedDeath;
  }
  tell_exit(turn, message, what);
  if (state.lost_ms) return total_loss(turn, "all workers died", 70);
  if (is_verdict(message.exit_code()) && comes_nobody(state) && !call_unfit(turn)) {
    end_run(turn, message.exit_code(),
            whole + (never_was ? "; " : "\n") + "nobody else is left; " + what_remains(turn));
    return Reason::kEndedDeath;
  }
  return Reason::kIgnored;
}

// The member was declared dead before. The exit tells how it died, and whether another one comes.
Reason exit_of_dead(Turn& turn, Member& member, const std::string& what) {
  State& state = turn.state;
  if (member.has_exited) return Reason::kIgnored;
  member.has_exited = true;
  turn.log(LogLine::Level::kInfo, "worker_exited", what);
  if (state.lost_ms) return total_loss(turn, what, 70);
  if (state.source_generation == 0) return regroup(turn, what, 70);
  // The next generation began before the cause of this death was known.
  if (state.run == RunState::kStarted && is_poisoned(turn, state.completed)) {
    return regroup(turn, what, 70);
  }
  return start_if_ready(turn, Reason::kIgnored);
}

// True if the agent names the process (Register.process). Its pid alone may belong to another
// process by now.
bool lists(const wire::AgentHello& hello, uint32_t pid, uint64_t process) {
  for (int i = 0; i < hello.living_size(); ++i) {
    if (hello.living(i) != pid) continue;
    return i >= hello.living_process_size() || !is_other_process(process, hello.living_process(i));
  }
  return false;
}

void note_ended(State& state, const std::string& node, uint64_t process) {
  constexpr size_t kMost = 1024;
  const std::pair one(node, process);
  const bool is_known = std::find(state.ended.begin(), state.ended.end(), one) != state.ended.end();
  if (process == 0 || is_known) return;
  state.ended.push_back(one);
  if (state.ended.size() > kMost) state.ended.pop_front();
}

// A process that the agent does not list is gone.
void forget_unlisted(State& state, const wire::AgentHello& hello) {
  std::erase_if(state.experience.known, [&](const auto& entry) {
    const auto& [node, pid] = entry.first;
    return node == hello.node() && !lists(hello, pid, entry.second);
  });
}

}  // namespace

bool ends_the_run(const Turn& turn, const Member& member, int exit_code) {
  const State& state = turn.state;
  if (!is_verdict(exit_code)) return false;
  if (state.source_generation == 0) return true;
  // Its agent starts no worker after it. Before the first step all places count; later the others
  // go on.
  const bool has_begun = state.completed > state.base.step;
  const bool is_of_all = !has_begun || exit_code == 65 || is_script(turn.options.job.model());
  return is_of_all && is_listed(state, member);
}

Reason on_agent_hello(Turn& turn, ConnectionId connection, const wire::AgentHello& m) {
  State& state = turn.state;
  if (!m.run_id().empty() && m.run_id() != state.run_id) {
    wire::Envelope envelope;
    envelope.mutable_evict()->set_reason("this is run \"" + state.run_id + "\"");
    turn.send(connection, std::move(envelope));
    turn.actions.push_back(CloseConnection{connection});
    turn.log(LogLine::Level::kWarn, "agent_refused",
             "the agent of " + m.node() + " belongs to run \"" + m.run_id() + "\"");
    return Reason::kRefusedOtherRun;
  }
  const std::set<uint32_t> living(m.living().begin(), m.living().end());
  state.agents[connection] = KnownAgent{.node = m.node(),
                                        .pid = m.pid(),
                                        .workers = m.workers(),
                                        .metrics_address = m.metrics_address(),
                                        .living = living,
                                        .since_ms = turn.now_ms,
                                        .awaited = {},
                                        .notice = state.agents[connection].notice};
  forget_unlisted(state, m);
  note_living(turn, state.agents[connection]);
  await_notices(turn, state.agents[connection]);
  send_set_workers(turn);
  for (auto& [id, member] : state.members) {
    const bool is_gone = member.state == MemberState::kGone && member.node == m.node();
    if (is_gone && !lists(m, member.pid, member.process)) member.has_exited = true;
  }
  std::vector<MemberId> dead;
  for (MemberId id : living_on(state, m.node())) {
    Member& member = turn.at(id);
    member.is_missing = !lists(m, member.pid, member.process);
    // A connected member may have started after the agent wrote this.
    if (!member.is_missing || member.connection != 0) continue;
    if (member.state == MemberState::kLeft) {
      member.has_exited = true;
    } else {
      dead.push_back(id);
    }
  }
  if (dead.empty()) return Reason::kHeard;
  const std::string what = describe(state, dead) + " died: its agent no longer lists it";
  for (MemberId id : dead) declare_dead(turn, turn.at(id));
  return after_deaths(turn, dead, what, 70);
}

Reason on_worker_exit(Turn& turn, KnownAgent& agent, const wire::WorkerExit& message) {
  State& state = turn.state;
  note_ended(state, agent.node, message.process());
  agent.living.erase(message.pid());
  state.experience.known.erase({agent.node, message.pid()});
  Member* member = member_of_exit(turn, agent, message);
  if (member != nullptr) forget_order(turn, member->id);
  const Place place{agent.node, message.local_rank()};
  if (message.will_restart()) {
    state.given_up.erase(place);
  } else {
    // An earlier exit there may have been told again after its successor's death was known.
    state.replacements.erase(place);
    if (message.signal() != 0 || message.exit_code() != 0)
      state.given_up[place] = message.exit_code();
  }
  if (!is_orderly(message)) note_casualty(turn, casualty_of(turn, agent, message, member));
  if (member == nullptr) return exit_of_stranger(turn, agent, message);
  const std::string what = with_last_words(
      describe(state, *member) + " " + cause_of(message) + " after step " +
          std::to_string(member->step) + (message.will_restart() ? " and is started again" : ""),
      message);
  if (!member->has_exited) {
    forget_process(state, *member);
    if (message.will_restart()) expect_replacement(turn, place);
  }
  if (member->state == MemberState::kDead) return exit_of_dead(turn, *member, what);
  if (member->has_exited) return Reason::kIgnored;
  member->has_exited = true;
  // A member that has left may end. The exit of a member that was let go tells whether another
  // comes.
  if (member->state == MemberState::kLeft) return Reason::kIgnored;
  if (member->state == MemberState::kGone)
    return state.lost_ms ? total_loss(turn, what, 70) : Reason::kIgnored;
  declare_dead(turn, *member);
  if (ends_the_run(turn, *member, message.exit_code())) {
    end_run(turn, message.exit_code(), what + "; " + what_remains(turn));
    return Reason::kEndedDeath;
  }
  const int code = is_verdict(message.exit_code()) ? message.exit_code() : 70;
  return after_deaths(turn, {member->id}, what, code);
}

Reason on_closed(Turn& turn, const ConnectionClosed& event) {
  State& state = turn.state;
  if (const auto agent = state.agents.find(event.connection); agent != state.agents.end()) {
    const std::string node = agent->second.node;
    state.agents.erase(agent);
    if (is_open(state.run) || state.run == RunState::kGathering) {
      turn.log(LogLine::Level::kInfo, "agent_disconnected",
               "the agent of node " + node + " lost its connection (" + event.why +
                   "); its workers are judged by their own connections");
    }
    return Reason::kDisconnected;
  }
  Member* member = turn.member_of(event.connection);
  state.by_connection.erase(event.connection);
  if (member == nullptr) return Reason::kIgnored;
  member->connection = 0;
  member->disconnected_ms = turn.now_ms;
  member->disconnected_why = event.why;
  const bool can_die = is_alive(*member) && member->state != MemberState::kLeft &&
                       state.run != RunState::kEnded && state.run != RunState::kTermEnded;
  if (!member->is_missing || !can_die) return Reason::kDisconnected;
  const std::string what = describe(state, *member) +
                           " died: it closed its connection, and its agent no longer lists it";
  declare_dead(turn, *member);
  return after_deaths(turn, {member->id}, what, 70);
}

}  // namespace lockstep::coordinator
