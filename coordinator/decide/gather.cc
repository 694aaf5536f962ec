// The first generation of a term: which members have to be there.
#include <algorithm>
#include <map>

#include "comm/base/planted_bug.h"
#include "coordinator/decide/open_term.h"

namespace lockstep::coordinator {
namespace {

// Takes members at unfit places only if too few are ready without them.
std::vector<MemberId> ready_members(const Turn& turn) {
  std::vector<MemberId> members;
  std::vector<MemberId> unfit;
  for (MemberId id : turn.state.waiting) {
    const Member& member = turn.state.members.at(id);
    if (may_join(turn, member)) (is_unfit(turn, member) ? unfit : members).push_back(id);
  }
  for (auto it = unfit.begin(); it != unfit.end() && members.size() < least_workers(turn); ++it)
    members.push_back(*it);
  return members;
}

// The same machines as before are there: the coordinator waits for no worker beyond a lease.
bool has_waited(const Turn& turn) {
  return turn.state.gathered_ms != 0 &&
         turn.now_ms - turn.state.gathered_ms > turn.options.lease_ms;
}

// Counts the processes here whose place has computed wrong. Each stands for one of the wanted
// workers and takes no part: no other worker comes in its stead, and a wait for one would only cost
// a lease.
size_t put_out(const State& state) {
  return static_cast<size_t>(
      std::count_if(state.waiting.begin(), state.waiting.end(), [&](MemberId id) {
        const Member& member = state.members.at(id);
        return is_alive(member) && member.connection != 0 && is_expelled(state, member);
      }));
}

// A worker at an unfit place takes no part, or its agent does not start it.
size_t unfit_here(const Turn& turn) {
  const State& state = turn.state;
  if (state.unfit.empty()) return 0;  // thousands may be waiting
  const auto here = std::count_if(state.waiting.begin(), state.waiting.end(), [&](MemberId id) {
    return is_unfit(turn, state.members.at(id));
  });
  return static_cast<size_t>(here) + empty_unfit(turn);
}

size_t wanted_but(const Turn& turn, size_t out) {
  const size_t wanted = turn.wanted();
  return std::max(std::min(wanted, least_workers(turn)), wanted - std::min(wanted, out));
}

// How many of the wanted workers a later term waits for, a lease long.
size_t expected(const Turn& turn) {
  const size_t out = put_out(turn.state) + unfit_here(turn);
  return std::max<size_t>(turn.options.min_workers, wanted_but(turn, out));
}

std::string last_death(const State& state) {
  return state.early_death.empty() ? "" : ". The last one to die: " + state.early_death;
}

Reason missing_workers(Turn& turn) {
  const State& state = turn.state;
  const std::vector<MemberId> present = ready_members(turn);
  std::string agents;
  for (const auto& [connection, agent] : state.agents) {
    agents +=
        (agents.empty() ? "" : ", ") + agent.node + " (" + counted(agent.workers, "worker") + ")";
  }
  const uint32_t missing = turn.wanted() - static_cast<uint32_t>(present.size());
  end_run(turn, 70,
          std::to_string(missing) + " of " + std::to_string(turn.wanted()) +
              " workers did not register within " +
              std::to_string(turn.options.start_timeout_ms / 1000) +
              " s (cluster.start_timeout_s). Registered: " +
              (present.empty() ? "nobody" : describe(state, present)) + ". Agents: " +
              (agents.empty() ? "none" : agents) + what_is_unfit(state) + last_death(state) +
              ". See the logs of the missing workers in " + turn.options.run_dir + "/logs");
  return Reason::kEndedMissingWorkers;
}

Reason too_few(Turn& turn) {
  const size_t here = ready_members(turn).size();
  const bool can_go_on = !turn.state.checkpoints.empty();
  end_run(turn, can_go_on ? 75 : 70,
          "only " + counted(here, "worker") + " came within " +
              std::to_string(turn.options.min_wait_ms / 1000) +
              " s (cluster.min_wait_s), cluster.min_workers is " +
              std::to_string(turn.options.min_workers) + what_is_unfit(turn.state) +
              last_death(turn.state) + "; " + what_remains(turn));
  return Reason::kEndedTooFew;
}

// Before the first step an end loses nothing, and the user who started the run is still there.
bool has_too_few_gpus(const Turn& turn) {
  const size_t empty = empty_unfit(turn);
  return is_first_start(turn) && empty > 0 &&
         turn.wanted() - std::min<size_t>(turn.wanted(), empty) < least_workers(turn);
}

Reason too_few_gpus(Turn& turn) {
  end_run(turn, 78,
          std::to_string(empty_unfit(turn)) + " of " + std::to_string(turn.wanted()) +
              " workers cannot begin, and cluster.min_workers is " +
              std::to_string(turn.options.min_workers) + what_is_unfit(turn.state) +
              ". Mend these GPUs or train without them; with cluster.gpu_health=tell the run uses "
              "them all the same");
  return Reason::kEndedMissingWorkers;
}

// The agents that are here keep all workers that the run wants, and have stopped to replace them:
// no worker would end the wait. An agent that is not here may still come with its own.
bool has_everybody_given_up(const Turn& turn) {
  const State& state = turn.state;
  std::map<std::string, size_t> kept;
  for (const auto& [connection, agent] : state.agents) {
    if (!agent.living.empty()) return false;
    kept[agent.node] += agent.workers;
  }
  size_t all = 0;
  for (const auto& [node, workers] : kept) {
    if (given_up_on(state, node) < workers) return false;
    all += workers;
  }
  return all > 0 && all >= turn.wanted() && state.by_process.empty() && state.replacements.empty();
}

Reason nobody_comes(Turn& turn) {
  const State& state = turn.state;
  int code = 70;
  for (const auto& [place, last] : state.given_up)
    if (is_verdict(last)) code = last;
  end_run(turn, code,
          "nobody is left, and no agent starts a worker again (cluster.max_crashes, "
          "cluster.max_preemptions)" +
              last_death(state) + "; " + what_remains(turn));
  return Reason::kEndedDeath;
}

// In a later term, after a lease: too few are here to go on, and no worker is on the way.
bool is_deserted(const Turn& turn) {
  const State& state = turn.state;
  return !is_first_start(turn) && turn.now_ms - state.started_ms > turn.options.lease_ms &&
         ready_members(turn).size() < turn.options.min_workers && state.replacements.empty() &&
         std::all_of(state.agents.begin(), state.agents.end(),
                     [](const auto& e) { return e.second.awaited.empty(); });
}

bool has_verdict(const State& state) {
  return std::any_of(state.given_up.begin(), state.given_up.end(),
                     [](const auto& e) { return is_verdict(e.second); });
}

}  // namespace

size_t given_up_on(const State& state, const std::string& node) {
  return static_cast<size_t>(
      std::count_if(state.given_up.begin(), state.given_up.end(),
                    [&](const auto& entry) { return entry.first.node == node; }));
}

bool call_others(Turn& turn) {
  State& state = turn.state;
  uint32_t missing = turn.wanted();
  std::string names;
  for (const auto& [connection, agent] : state.agents) {
    const auto had = state.emptied.find(agent.node);
    if (agent.workers > 0 || missing == 0 || had == state.emptied.end()) continue;
    const uint32_t workers = std::min(missing, had->second);
    missing -= workers;
    keep_workers(turn, agent.node, workers);
    names += (names.empty() ? "" : ", ") + agent.node + " (" + std::to_string(workers) + ")";
  }
  if (names.empty()) return false;
  send_set_workers(turn);
  turn.note(
      LogLine::Level::kWarn, "others_called",
      "nodes that had no workers any more start some again, because the others are gone: " + names);
  return true;
}

bool are_all_drained(const State& state) {
  return !state.agents.empty() && state.by_process.empty() &&
         std::all_of(state.agents.begin(), state.agents.end(),
                     [&](const auto& e) { return keeps_none(state, e.second.node); });
}

Reason stop_drained(Turn& turn, const std::string& after) {
  const std::string why = "stopped: all nodes that are here were drained; ";
  end_run(turn, 75, (after.empty() ? "" : after + "; ") + why + what_remains(turn));
  return Reason::kEndedStopped;
}

bool is_first_start(const Turn& turn) {
  return turn.state.term <= 1 && turn.state.base_checkpoint.empty();
}

Reason gather(Turn& turn, Reason otherwise) {
  State& state = turn.state;
  if (state.run != RunState::kGathering) return otherwise;
  if (has_too_few_gpus(turn)) return too_few_gpus(turn);
  const bool needs_all = is_first_start(turn) || turn.options.is_open_term();
  const size_t least = needs_all          ? wanted_but(turn, unfit_here(turn))
                       : has_waited(turn) ? turn.options.min_workers
                                          : expected(turn);
  if (state.waiting.size() < least) return otherwise;
  std::vector<MemberId> members = ready_members(turn);
  const bool are_all_here = members.size() >= turn.wanted();
  const bool is_enough = members.size() >= least;
  if (!are_all_here && !is_enough) return otherwise;
  if (members.size() > turn.wanted()) {
    sort_naturally(state, members);
    members.resize(turn.wanted());
  }
  if (turn.options.is_open_term() && !LOCKSTEP_BUG(kOpenTermTrains))
    return resolve_open_term(turn, members);
  prepare_generation(turn, std::move(members),
                     are_all_here ? "all workers are here" : "enough workers are here");
  return Reason::kPrepared;
}

std::optional<Reason> judge_gathering(Turn& turn) {
  if (turn.state.run != RunState::kGathering) return std::nullopt;
  if (turn.state.stop_ms) {  // ordered in a term that is over, and nothing is left to stop
    end_run(turn, 75, "stopped (" + turn.state.stop_reason + "); " + what_remains(turn));
    return Reason::kEndedStopped;
  }
  if (const Reason reason = gather(turn, Reason::kNothingDue); reason != Reason::kNothingDue) {
    return reason;
  }
  const bool have_given_up = has_everybody_given_up(turn);
  const bool are_gone = is_deserted(turn);
  const bool has_others = (have_given_up || are_gone) &&
                          (call_unfit(turn) || (!has_verdict(turn.state) && call_others(turn)));
  if (have_given_up && !has_others) return nobody_comes(turn);
  if (are_gone && !has_others && are_all_drained(turn.state)) return stop_drained(turn, "");
  const int64_t waited_ms = turn.now_ms - turn.state.started_ms;
  if (is_first_start(turn)) {
    if (waited_ms > turn.options.start_timeout_ms) return missing_workers(turn);
  } else if (waited_ms > turn.options.min_wait_ms) {
    return too_few(turn);
  }
  return std::nullopt;
}

}  // namespace lockstep::coordinator
