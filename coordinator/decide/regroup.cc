// Goes on after a death: with the next generation of the members that are left, the next term, or
// the end.
#include <algorithm>
#include <iterator>
#include <set>

#include "comm/base/limits.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

// First all members that may hold the state, whatever number is wanted: one of them may be the only
// one ahead. Then the members that were to join, then the waiting ones, up to the wanted number.
std::vector<MemberId> next_members(const Turn& turn) {
  const State& state = turn.state;
  std::vector<MemberId> members;
  std::set<MemberId> seen;
  const auto add = [&](MemberId id, bool is_wanted) {
    if (is_wanted && seen.insert(id).second) members.push_back(id);
  };
  const auto goes_on = [&](MemberId id) {
    const Member& member = state.members.at(id);
    return is_alive(member) && !member.has_exited && !is_expelled(state, member);
  };
  for (MemberId id : state.source_members) add(id, goes_on(id));
  if (state.planned) {
    for (MemberId id : state.planned->ranks) add(id, goes_on(id));
  }
  const auto add_newcomers = [&](const auto& ids, bool are_unfit, size_t most) {
    for (MemberId id : ids) {
      if (members.size() >= most) return;
      const Member& member = state.members.at(id);
      add(id, may_join(turn, member) && is_unfit(turn, member) == are_unfit);
    }
  };
  add_newcomers(state.ranks, false, turn.wanted());
  add_newcomers(state.waiting, false, turn.wanted());
  add_newcomers(state.ranks, true, least_workers(turn));
  add_newcomers(state.waiting, true, least_workers(turn));
  return members;
}

bool may_hold_state(const State& state, MemberId id) {
  if (is_source(state, state.members.at(id))) return true;
  return state.planned && contains(state.planned->ranks, id);
}

// Before anything was trained in this term: the others wait.
Reason regather(Turn& turn, const std::string& why, int code) {
  State& state = turn.state;
  if (state.run == RunState::kPrepared) {
    if (const auto over = judge_fruitless(turn, why)) return *over;
    set_generation_state(turn, state.generation, GenerationState::kAbandoned);
    state.generation = state.last_generation;
    for (MemberId id : state.ranks) {
      Member& member = turn.at(id);
      if (!is_alive(member)) continue;
      member.state = MemberState::kRegistered;
      if (member.is_draining)
        bid_farewell(turn, member, "it was drained before it took part");
      else
        state.waiting.insert(id);
    }
    state.ranks.clear();
    state.run = RunState::kGathering;
  }
  std::map<Place, bool> is_gone;  // whether the last process there is proven to be dead
  for (const auto& [id, member] : state.members) {
    is_gone[place_of(member)] = member.state == MemberState::kDead && member.has_exited;
  }
  const bool is_proven =
      std::any_of(is_gone.begin(), is_gone.end(), [](const auto& entry) { return entry.second; });
  if (is_first_start(turn) && is_proven && state.replacements.empty()) {
    end_run(turn, code, why + " before training began; " + what_remains(turn));
    return Reason::kEndedDeath;
  }
  return gather(turn, Reason::kAwaitsReplacement);
}

// With fewer the run writes a checkpoint at once, and the next term waits for more.
void shrink(Turn& turn, size_t members) {
  State& state = turn.state;
  if (members >= turn.options.min_workers || state.stop_ms) return;
  state.is_shrinking = true;
  state.stop_ms = turn.now_ms;
  state.stop_reason = "only " + counted(members, "worker") + " left, cluster.min_workers is " +
                      std::to_string(turn.options.min_workers);
  turn.note(LogLine::Level::kWarn, "too_few_workers",
            state.stop_reason + ": a checkpoint is written, then the run waits for more");
}

// A member that a planned change leaves out meets the others once more at the boundary, and they
// wait for it there.
bool is_awaited_at_boundary(const State& state, MemberId id) {
  return state.leavers.contains(id) &&
         std::any_of(state.ranks.begin(), state.ranks.end(), [&](MemberId other) {
           return state.members.at(other).lived < state.generation;
         });
}

bool matter(const Turn& turn, const std::vector<MemberId>& dead) {
  return std::any_of(dead.begin(), dead.end(), [&](MemberId id) {
    const Member& member = turn.state.members.at(id);
    return is_source(turn.state, member) || is_listed(turn.state, member) ||
           may_hold_state(turn.state, id) || is_awaited_at_boundary(turn.state, id);
  });
}

// An agent has a process whose end is not proven: it is stopped for a while, or still on its way.
// If it was left out, it ends now, and its agent may start another one in its place, since the one
// that was to stay has died.
bool may_come_back(const State& state) {
  const bool is_there = std::any_of(state.agents.begin(), state.agents.end(),
                                    [](const auto& e) { return !e.second.living.empty(); });
  return is_there ||
         std::any_of(state.members.begin(), state.members.end(), [&](const auto& entry) {
           const Member& member = entry.second;
           const bool is_over =
               member.state == MemberState::kDead || member.state == MemberState::kGone;
           return is_over && !member.has_exited && has_agent(state, member.node);
         });
}

// Whether the agents keep more workers than are there or have ended for good: a `scale` has just
// started processes that the coordinator does not know yet.
bool are_some_started(const Turn& turn) {
  const State& state = turn.state;
  size_t kept = 0;
  size_t known = empty_unfit(turn);
  for (const auto& [connection, agent] : state.agents) {
    const std::string& node = agent.node;
    kept += agent.workers;
    known += given_up_on(state, node);
    known += static_cast<size_t>(
        std::count_if(state.by_process.begin(), state.by_process.end(),
                      [&](const auto& process) { return process.first.first == node; }));
  }
  return kept > known;
}

std::string consequence_of(const Turn& turn, Reason reason) {
  const State& state = turn.state;
  switch (reason) {
    case Reason::kRegrouped:
      return counted(state.ranks.size(), "worker") + (state.ranks.size() == 1 ? " goes" : " go") +
             " on, the step in flight is computed again";
    case Reason::kStandbyDied:
      return "it was not training; the run goes on";
    case Reason::kAwaitsReplacement:
      return "training begins when enough workers are here";
    case Reason::kAwaitsProof:
      return "nobody holds the state any more; waiting to hear whether their agents start workers "
             "again";
    case Reason::kEndedTerm:
      return "the run goes on from the newest checkpoint";
    case Reason::kPrepared:
      return "training begins without it";
    default:
      return "the run ends";
  }
}

}  // namespace

std::optional<Reason> judge_fruitless(Turn& turn, const std::string& why) {
  State& state = turn.state;
  Step step = state.completed;
  for (MemberId id : state.ranks) step = std::max(step, state.members.at(id).step);
  const bool is_before_step =
      state.resume.phase == Phase::kTrain || state.resume.phase == Phase::kEdge;
  if (step > state.fruitful_to || !is_before_step || state.stop_ms) {
    state.fruitful_to = std::max(state.fruitful_to, step);
    state.experience.fruitless = 0;
    return std::nullopt;
  }
  if (++state.experience.fruitless < limits::kFruitlessBeginnings) return std::nullopt;
  end_run(turn, 70,
          "the workers have begun " + std::to_string(state.experience.fruitless) +
              " times in a row without completing a step, the last time: " + why + "; " +
              what_remains(turn));
  return Reason::kEndedFruitless;
}

void declare_dead(Turn& turn, Member& member) {
  State& state = turn.state;
  member.state = MemberState::kDead;
  member.dead_ms = turn.now_ms;
  member.is_left_over = !member.has_exited && !member.is_missing;
  state.waiting.erase(member.id);
  forget_process(state, member);
  detach(turn, member);
}

Reason after_deaths(Turn& turn, const std::vector<MemberId>& dead, const std::string& what,
                    int code) {
  State& state = turn.state;
  const bool is_needed = matter(turn, dead) || !is_open(state.run);
  for (MemberId id : dead) state.leavers.erase(id);
  const size_t before = turn.actions.size();
  const Reason reason =
      is_needed ? regroup(turn, what, code) : finish_if_all_left(turn, Reason::kStandbyDied);
  if (state.run == RunState::kStarted) state.change_due = true;
  // The death is told first, although its consequence is known only now.
  std::vector<Action> following(
      std::make_move_iterator(turn.actions.begin() + static_cast<long>(before)),
      std::make_move_iterator(turn.actions.end()));
  turn.actions.erase(turn.actions.begin() + static_cast<long>(before), turn.actions.end());
  turn.note(LogLine::Level::kWarn, "member_died", what + "; " + consequence_of(turn, reason));
  for (Action& action : following) turn.actions.push_back(std::move(action));
  return reason;
}

Reason regroup(Turn& turn, const std::string& why, int code) {
  State& state = turn.state;
  if (state.source_generation == 0) return regather(turn, why, code);
  std::vector<MemberId> members = next_members(turn);
  const bool has_state = std::any_of(members.begin(), members.end(),
                                     [&](MemberId id) { return may_hold_state(state, id); });
  if (!has_state) return total_loss(turn, why, code);
  if (const auto over = judge_fruitless(turn, why)) return *over;
  shrink(turn, members.size());
  prepare_generation(turn, std::move(members), split_line(why).first);
  return Reason::kRegrouped;
}

Reason total_loss(Turn& turn, const std::string& why, int code) {
  State& state = turn.state;
  const auto [what, words] = split_line(why);
  if (lacks_last_evaluation(turn)) {
    return end_term(turn, what +
                              ", and the last checkpoint is written, but only it has the last "
                              "evaluation; the coordinator reads it there");
  }
  if (is_done(turn)) {
    end_run(turn, 0, how_it_ended(turn, state.completed));
    return Reason::kEndedFinished;
  }
  if (const auto reason = judge_poison(turn, state.completed)) return *reason;
  const bool is_awaited = may_come_back(state);
  const bool is_proven =
      !is_awaited &&
      std::all_of(state.source_members.begin(), state.source_members.end(), [&](MemberId id) {
        const Member& member = turn.at(id);
        return member.has_exited || member.state == MemberState::kGone;
      });
  const bool comes_somebody = !state.replacements.empty() || !state.waiting.empty();
  if (!comes_somebody && is_awaited && !state.lost_ms) {
    state.lost_ms = turn.now_ms;
    return Reason::kAwaitsProof;
  }
  const bool goes_on = comes_somebody || !is_proven || state.stop_ms || are_some_started(turn);
  if (goes_on || call_unfit(turn) || (!is_verdict(code) && call_others(turn))) {
    return end_term(turn, what + ", and nobody is left who holds the state; the run goes on from " +
                              "the newest checkpoint");
  }
  if (!is_verdict(code) && are_all_drained(state)) return stop_drained(turn, what);
  end_run(turn, code,
          what + ", nobody is left and nobody is started again; " + what_remains(turn) + words);
  return Reason::kEndedDeath;
}

}  // namespace lockstep::coordinator
