// Judges which members count as dead although nothing proves it: by silence, lost connections, and
// what peers say.
#include <algorithm>
#include <set>

#include "comm/base/planted_bug.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

constexpr size_t kBrakeMembers = 3;  // and more than a third
constexpr uint32_t kMostDoublings = 6;

struct Verdicts {
  std::vector<MemberId> dead;    // for good reasons
  std::vector<MemberId> silent;  // by silence alone
  std::string what;              // of the dead
  std::string what_silent;
  size_t quiet = 0;  // not heard of for a while, the silent among them
  size_t judged = 0;
};

bool can_die(const Member& member) {
  return is_alive(member) && member.state != MemberState::kLeft;
}

void add(std::vector<MemberId>& to, std::string& what, const State& state, const Member& member,
         const std::string& cause) {
  to.push_back(member.id);
  what += (what.empty() ? "" : "; ") + describe(state, member) + " " + cause;
}

bool is_named(const State& state, MemberId id) {
  if (!state.suspicion) return false;
  const auto& named = state.suspicion->named;
  return std::any_of(named.begin(), named.end(), [id](const auto& e) { return e.second == id; });
}

// The nodes that have no agent connected and where the data plane has lost a worker: a peer names
// it and its connection is closed, or it has just died.
std::set<std::string> lost_nodes(const Turn& turn, const std::set<std::string>& agents) {
  std::set<std::string> lost;
  for (const auto& [id, member] : turn.state.members) {
    const bool has_just_died = member.state == MemberState::kDead && !member.has_exited &&
                               turn.now_ms - member.dead_ms <= turn.options.lease_ms;
    const bool is_named_away =
        can_die(member) && member.connection == 0 && is_named(turn.state, id);
    if ((has_just_died || is_named_away) && !agents.contains(member.node)) lost.insert(member.node);
  }
  return lost;
}

// If two members die of the same samples, the second one's agent has to say what it had in hand
// before another member gets these samples. The agent says so as soon as it has reaped the process.
bool may_be_poisoned(const Turn& turn) {
  if (has_suspects(turn)) return true;
  const auto& members = turn.state.members;
  return std::any_of(members.begin(), members.end(), [&](const auto& entry) {
    const Member& member = entry.second;
    return member.state == MemberState::kDead && !is_told_of(member) &&
           turn.now_ms - member.dead_ms <= turn.options.proof_ms && may_tell(turn, member.node);
  });
}

void judge(const Turn& turn, const Member& member, const std::set<std::string>& agents,
           const std::set<std::string>& lost, Verdicts& out) {
  const Options& options = turn.options;
  const int64_t silent_ms = turn.now_ms - member.heard_ms;
  const bool is_away = member.connection == 0;
  const int64_t away_ms = turn.now_ms - member.disconnected_ms;
  ++out.judged;
  if (is_away && away_ms > options.reconnect_ms && lost.contains(member.node)) {
    return add(out.dead, out.what, turn.state, member,
               "closed its connection (" + member.disconnected_why + ") and its node is lost");
  }
  if (is_away || silent_ms > options.lease_ms / 2) ++out.quiet;
  if (is_away && is_named(turn.state, member.id)) {
    const bool is_awaited =
        may_tell(turn, member.node) && away_ms <= options.proof_ms && may_be_poisoned(turn);
    if (is_awaited) return;
    return add(out.dead, out.what, turn.state, member,
               "closed its connection (" + member.disconnected_why +
                   ") and a peer lost it at the same time");
  }
  // With an agent there, the agent would know first.
  const int64_t window_ms = agents.contains(member.node) ? options.lease_ms : options.reconnect_ms;
  if (is_away && away_ms > window_ms) {
    return add(out.silent, out.what_silent, turn.state, member,
               "closed its connection and did not come back within " + std::to_string(away_ms) +
                   " ms (" + member.disconnected_why + ")");
  }
  if (silent_ms > options.lease_ms) {
    add(out.silent, out.what_silent, turn.state, member,
        "was silent for " + std::to_string(silent_ms) + " ms (cluster.lease_s is " +
            std::to_string(options.lease_ms / 1000) + ")");
  }
}

// If many fall silent together, the network is more likely to be at fault than they: they get one
// more lease.
bool is_braked(Turn& turn, const Verdicts& verdicts) {
  State& state = turn.state;
  if (verdicts.quiet < kBrakeMembers || verdicts.quiet * 3 <= verdicts.judged) {
    state.brake_ms.reset();
    return false;
  }
  if (!state.brake_ms) {
    state.brake_ms = turn.now_ms;
    turn.note(LogLine::Level::kWarn, "evictions_held",
              std::to_string(verdicts.quiet) + " of " + std::to_string(verdicts.judged) +
                  " workers fell silent together; nobody is evicted for " +
                  std::to_string(turn.options.lease_ms) + " ms, unless its death is proven");
  }
  return turn.now_ms - *state.brake_ms <= turn.options.lease_ms;
}

// The member that most peers named; on a tie the higher rank. Nothing if no member was named.
std::optional<MemberId> most_named(const State& state) {
  std::map<MemberId, uint32_t> votes;
  for (const auto& [by, whom] : state.suspicion->named) {
    const auto member = state.members.find(whom);
    if (member != state.members.end() && can_be_suspected(state, member->second)) ++votes[whom];
  }
  std::optional<MemberId> most;
  for (const auto& [id, count] : votes) {
    const auto key = std::pair(count, state.members.at(id).rank);
    const auto than =
        std::pair(most ? votes.at(*most) : 0, most ? state.members.at(*most).rank : 0);
    if (!most || (LOCKSTEP_BUG(kLeastNamedGoes) ? key < than : key > than)) most = id;
  }
  return most;
}

void bar(Turn& turn, const Member& member) {
  Bar& bar = turn.state.experience.barred[place_of(member)];
  bar.until_ms = turn.now_ms + (turn.options.bar_ms << std::min(bar.times, kMostDoublings));
  ++bar.times;
}

// After a take-over members have to find the new coordinator first.
bool are_returning(const Turn& turn) {
  const State& state = turn.state;
  return state.is_take_over && turn.now_ms - state.started_ms <= turn.options.lease_ms;
}

Step step_in_flight(const State& state) {
  Step step = state.completed;
  for (MemberId id : state.ranks) step = std::max(step, state.members.at(id).step);
  return step;
}

}  // namespace

std::optional<Reason> judge_members(Turn& turn) {
  State& state = turn.state;
  if (are_returning(turn)) return std::nullopt;
  std::set<std::string> agents;
  for (const auto& [connection, agent] : state.agents) agents.insert(agent.node);
  Verdicts verdicts;
  const std::set<std::string> lost = lost_nodes(turn, agents);
  for (const auto& [process, id] : state.by_process) {
    if (can_die(turn.at(id))) judge(turn, turn.at(id), agents, lost, verdicts);
  }
  if (!verdicts.silent.empty() && !is_braked(turn, verdicts)) {
    verdicts.dead.insert(verdicts.dead.end(), verdicts.silent.begin(), verdicts.silent.end());
    verdicts.what += (verdicts.what.empty() ? "" : "; ") + verdicts.what_silent;
  }
  if (verdicts.dead.empty()) return std::nullopt;
  for (MemberId id : verdicts.dead) declare_dead(turn, turn.at(id));
  return after_deaths(turn, verdicts.dead, verdicts.what, 70);
}

namespace {

// The member lives, and was asked because no member went on: only a thread that is stuck in an
// apply keeps a member from answering.
bool hangs_in_apply(const Turn& turn, const Member& member) {
  return turn.state.stood_still && member.connection != 0 &&
         turn.now_ms - member.heard_ms <= turn.options.lease_ms;
}

}  // namespace

bool has_tried_again(const State& state) {
  return state.unexplained && *state.unexplained == step_in_flight(state);
}

Reason try_again(Turn& turn, const std::string& what) {
  State& state = turn.state;
  const Step step = step_in_flight(state);
  if (has_tried_again(state)) {
    return end_term(turn, "the generation broke twice after step " + std::to_string(step) +
                              " and nobody died (" + what +
                              "); the run goes on from the newest checkpoint");
  }
  state.unexplained = step;
  const std::string why = "the generation broke after step " + std::to_string(step) +
                          " and nobody died (" + what + "); the same workers try once more";
  turn.note(LogLine::Level::kWarn, "generation_broke", why);
  return regroup(turn, why, 70);
}

std::optional<Reason> judge_suspicion(Turn& turn) {
  State& state = turn.state;
  if (!state.suspicion || state.run != RunState::kStarted) return std::nullopt;
  // The named member may be on its way to us. If it never comes, that is proof, and no bar is
  // needed.
  if (are_returning(turn)) return std::nullopt;
  if (turn.now_ms - state.suspicion->since_ms <= turn.options.proof_ms) return std::nullopt;
  const std::string what = state.suspicion->what;
  const auto suspect = most_named(state);
  if (!suspect) return try_again(turn, what);
  Member& member = turn.at(*suspect);
  const std::string who = describe(state, member);
  bar(turn, member);
  declare_dead(turn, member);
  return after_deaths(
      turn, {*suspect},
      who + " is evicted: its peers cannot reach it and nothing proves a death (" + what + ")", 70);
}

std::optional<Reason> judge_unpromised(Turn& turn) {
  State& state = turn.state;
  if (state.run != RunState::kPrepared || is_paused(state) ||
      turn.now_ms - state.prepared_ms <= turn.options.prepare_timeout_ms) {
    return std::nullopt;
  }
  std::vector<MemberId> dead;
  for (MemberId id : state.ranks) {
    const Member& member = turn.at(id);
    if (member.state != MemberState::kPromised && !is_busy_in_edge(turn, member))
      dead.push_back(id);
  }
  if (dead.empty()) return std::nullopt;
  std::string what = describe(state, dead) + " did not answer the prepare of generation " +
                     std::to_string(state.generation) + " within " +
                     std::to_string(turn.options.prepare_timeout_ms) + " ms";
  std::vector<MemberId> hung;
  std::copy_if(dead.begin(), dead.end(), std::back_inserter(hung),
               [&](MemberId id) { return hangs_in_apply(turn, turn.at(id)); });
  if (!hung.empty())
    what += " and made no progress before: " + describe(state, hung) +
            (hung.size() == 1 ? " hangs" : " hang") + "; the stacks are saved in " +
            turn.options.run_dir + "/logs";
  for (MemberId id : dead) {
    Member& member = turn.at(id);
    if (contains(hung, id))
      evict_hung(turn, member, *state.stood_still, "no progress, and no answer to a prepare");
    else
      declare_dead(turn, member);
  }
  const Reason reason = after_deaths(turn, dead, what, 70);
  return reason == Reason::kRegrouped ? Reason::kEvictedUnpromised : reason;
}

}  // namespace lockstep::coordinator
