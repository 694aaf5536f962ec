// Planned changes: members join and leave between two steps, without a pause. The members switch by
// themselves when all of them know of the change; the coordinator only learns of it.
#include <algorithm>

#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

// Nothing is changed while something else is under way.
bool can_change(const Turn& turn) {
  const State& state = turn.state;
  if (state.run != RunState::kStarted || state.planned || state.stop_ms || state.end_ms ||
      state.lost_ms || state.is_interrupted || state.suspicion || !state.leavers.empty()) {
    return false;
  }
  return std::all_of(state.ranks.begin(), state.ranks.end(), [&](MemberId id) {
    const Member& member = state.members.at(id);
    return member.connection != 0 && member.state == MemberState::kTraining &&
           (!state.is_switched || member.lived >= state.generation);
  });
}

// A member that is slow for long gives its place to one of `spare`, as long as a member stays that
// can hand the state over.
void replace_slow(const State& state, const std::vector<MemberId>& spare,
                  std::vector<MemberId>& members) {
  const auto is_slow_here = [&](MemberId id) { return is_slow(state, state.members.at(id)); };
  const bool stays_somebody = std::any_of(members.begin(), members.end(), [&](MemberId id) {
    return contains(state.ranks, id) && !is_slow_here(id);
  });
  auto next = spare.begin();
  for (auto it = members.begin(); it != members.end() && stays_somebody; ++it) {
    if (!is_slow_here(*it)) continue;
    next = std::find_if_not(next, spare.end(), is_slow_here);
    if (next == spare.end()) return;
    *it = *next++;
  }
}

// The members of the next generation: the present ones without those that drain, and without the
// last ranks if there are more than wanted; then the waiting ones, up to the wanted number. Members
// at unfit places take part only if too few would without them.
std::vector<MemberId> desired_members(const Turn& turn) {
  const State& state = turn.state;
  std::vector<MemberId> members;
  std::vector<MemberId> unfit;
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    if (!member.is_draining) (is_unfit(turn, member) ? unfit : members).push_back(id);
  }
  if (members.size() > turn.wanted()) members.resize(turn.wanted());
  size_t stay = members.size();
  std::vector<MemberId> waiting(state.waiting.begin(), state.waiting.end());
  sort_naturally(state, waiting);
  std::vector<MemberId> spare;
  for (MemberId id : waiting) {
    const Member& member = state.members.at(id);
    if (!may_join(turn, member)) continue;
    const bool has_place = members.size() < turn.wanted();
    (is_unfit(turn, member) ? unfit : has_place ? members : spare).push_back(id);
  }
  replace_slow(state, spare, members);
  for (auto it = unfit.begin(); it != unfit.end() && members.size() < least_workers(turn); ++it) {
    members.push_back(*it);
    stay += contains(state.ranks, *it) ? 1 : 0;
  }
  // A member has to hand the state over: first the others join, then the last ones leave.
  if (stay == 0 && !members.empty()) {
    members.insert(members.end(), state.ranks.begin(), state.ranks.end());
  }
  sort_naturally(state, members);
  return members;
}

// Whether a process is on its way that may take the place of a member that has to leave.
bool comes_somebody(const State& state) {
  return std::any_of(state.agents.begin(), state.agents.end(), [&](const auto& entry) {
    const KnownAgent& agent = entry.second;
    if (keeps_none(state, agent.node)) return false;
    return !agent.awaited.empty() ||
           std::any_of(state.replacements.begin(), state.replacements.end(),
                       [&](const Place& place) { return place.node == agent.node; });
  });
}

// The members that were to stay when others were told to leave may be gone since then, by a death
// or by a change that was planned before.
bool has_to_stop(const Turn& turn) {
  const State& state = turn.state;
  return is_too_much(turn) && !comes_somebody(state) &&
         std::any_of(state.ranks.begin(), state.ranks.end(),
                     [&](MemberId id) { return state.members.at(id).is_draining; });
}

void announce(Turn& turn, const std::vector<MemberId>& members) {
  const State& state = turn.state;
  std::vector<MemberId> join;
  std::vector<MemberId> leave;
  for (MemberId id : members) {
    if (!contains(state.ranks, id)) join.push_back(id);
  }
  for (MemberId id : state.ranks) {
    if (!contains(members, id)) leave.push_back(id);
  }
  turn.log(LogLine::Level::kInfo, "change_planned",
           "at the next boundary that all know of, generation " +
               std::to_string(state.planned->generation) + " of " +
               counted(members.size(), "worker") + " takes over" +
               (join.empty() ? "" : ": " + describe(state, join) + " joins") +
               (leave.empty() ? "" : ": " + describe(state, leave) + " leaves") +
               (is_rebalance_due(state) ? "; the slots follow the speed of the workers" : ""));
}

void push_planned_to_all(Turn& turn) {
  const PlannedGeneration& planned = *turn.state.planned;
  std::vector<ConnectionId> to;
  for (MemberId id : turn.state.ranks) to.push_back(turn.at(id).connection);
  for (MemberId id : planned.ranks) {
    if (!contains(turn.state.ranks, id)) to.push_back(turn.at(id).connection);
  }
  wire::Envelope envelope;
  *envelope.mutable_planned()->mutable_next() = planned.start;
  turn.send_to(to, planned.generation, std::move(envelope));
}

// Members that the switch left out go, as soon as the others are over the boundary.
void let_go(Turn& turn, const std::vector<MemberId>& old_members) {
  State& state = turn.state;
  for (MemberId id : old_members) {
    Member& member = turn.at(id);
    if (!is_alive(member) || contains(state.source_members, id)) continue;
    if (member.has_exited) {
      member.state = MemberState::kGone;
      continue;
    }
    if (member.leave) member.state = MemberState::kLeft;
    state.leavers.insert(id);
  }
}

bool can_be_planned(const Turn& turn, const ResumePoint& since) {
  const State& state = turn.state;
  const LedgerRow& row = state.lineage.at(state.source_generation).row;
  return since >= row.first && since.step <= turn.options.total_steps &&
         since.step >= state.completed;
}

}  // namespace

void plan_change(Turn& turn) {
  State& state = turn.state;
  state.change_due = false;
  if (!can_change(turn)) return;
  if (has_to_stop(turn)) {
    (void)on_stop(turn, "workers have to leave, and fewer than cluster.min_workers would stay");
    return;
  }
  turn_away_unfit(turn);
  const std::vector<MemberId> members = desired_members(turn);
  const bool is_same = members == state.ranks && !is_rebalance_due(state);
  if (is_same || members.empty()) return;
  PlannedGeneration planned;
  planned.generation = ++state.last_generation;
  planned.ranks = members;
  wire::Start& start = planned.start;
  place_members(turn, members, &start);
  *start.mutable_buckets() = state.start.buckets();
  start.set_total_steps(last_step(state, turn.options));
  start.set_lineage_id(state.lineage_id);
  fill_skips(state, &start);
  for (MemberId id : members) {
    if (contains(state.ranks, id)) start.mutable_source()->add_members(id);
  }
  start.set_writer(writer_of(start));
  state.generations.push_back({planned.generation, GenerationState::kPlanned});
  turn.persist(GenerationEntry{planned.generation, state.term, GenerationState::kPlanned, members,
                               start.SerializeAsString()});
  state.planned = std::move(planned);
  announce(turn, members);
  push_planned_to_all(turn);
}

void push_planned(Turn& turn, const Member& member) {
  const State& state = turn.state;
  wire::Envelope envelope;
  Generation generation = 0;
  if (state.planned && (is_listed(state, member) || contains(state.planned->ranks, member.id))) {
    generation = state.planned->generation;
    *envelope.mutable_planned()->mutable_next() = state.planned->start;
  } else if (state.is_switched && member.lived < state.generation &&
             (is_listed(state, member) || state.leavers.contains(member.id))) {
    // Others are over the boundary already; it comes after them.
    generation = state.generation;
    *envelope.mutable_planned()->mutable_next() = state.start;
    envelope.mutable_planned()->mutable_next()->clear_resume();
  } else {
    return;
  }
  turn.send_as(member.connection, generation, std::move(envelope));
}

Reason adopt_switch(Turn& turn, const ResumePoint& since) {
  State& state = turn.state;
  if (!can_be_planned(turn, since)) {
    return corrupt(turn, "workers switched to generation " +
                             std::to_string(state.planned->generation) + " at step " +
                             std::to_string(since.step) + ", where this run never was");
  }
  const PlannedGeneration planned = std::move(*state.planned);
  state.planned.reset();
  const Generation old = state.source_generation;
  const Step old_first = state.lineage.at(old).row.first.step;
  const std::vector<MemberId> old_members = state.source_members;
  for (MemberId id : old_members) turn.at(id).worked.push_back({old, old_first, since.step});
  state.start = planned.start;
  *state.start.mutable_resume() = to_wire(since);
  state.resume = since;
  set_generation_state(turn, old, GenerationState::kClosed);
  set_generation_state(turn, planned.generation, GenerationState::kStarted, &state.start);
  turn_page(turn, planned.generation, since, "planned");
  take_places(turn, planned.generation);
  state.source_members = planned.ranks;
  state.pending.erase(state.pending.lower_bound(since.step), state.pending.end());
  // While another generation is prepared already, only the past has changed.
  if (state.run == RunState::kStarted) {
    state.generation = planned.generation;
    state.ranks = planned.ranks;
    state.is_switched = true;
    state.suspicion.reset();
    for (MemberId id : state.ranks) {
      Member& member = turn.at(id);
      member.listed = state.generation;
      if (is_alive(member)) member.state = MemberState::kTraining;
      state.waiting.erase(id);
      // A stop needs the votes of all, and this one was no member when it was asked for.
      if (!contains(old_members, id)) push_stop(turn, member);
    }
    let_go(turn, old_members);
  }
  state.change_due = true;
  turn.log(LogLine::Level::kInfo, "generation_switched",
           "generation " + std::to_string(planned.generation) + " of " +
               counted(planned.ranks.size(), "worker") + " took over after step " +
               std::to_string(since.step));
  complete_steps(turn);
  return Reason::kSwitched;
}

void note_lived(Turn& turn, Member& member, Generation generation) {
  if (generation <= member.lived) return;
  member.lived = generation;
  if (generation == turn.state.source_generation) release_leavers(turn, false);
}

Reason on_switched(Turn& turn, Member& member, Generation generation,
                   const wire::SwitchReport& message) {
  State& state = turn.state;
  if (!is_valid(message.since(), turn.options)) return Reason::kRefusedMalformed;
  const ResumePoint since = from_wire(message.since());
  if (state.planned && generation == state.planned->generation) {
    if (!contains(state.planned->ranks, member.id)) return Reason::kRefusedMalformed;
    const Reason reason = adopt_switch(turn, since);
    if (!is_end(reason)) note_lived(turn, member, generation);
    return reason;
  }
  if (generation != state.source_generation) {
    push_present(turn, member);
    return Reason::kRefusedStaleGeneration;
  }
  if (!is_source(state, member)) return Reason::kRefusedMalformed;
  const ResumePoint first = state.lineage.at(generation).row.first;
  if (since.step != first.step) {
    return corrupt(turn, describe(state, member) + " switched to generation " +
                             std::to_string(generation) + " at step " + std::to_string(since.step) +
                             ", the others at step " + std::to_string(first.step));
  }
  note_lived(turn, member, generation);
  return Reason::kAlreadyCounted;
}

// A leaver is ready to go, whatever became of the others: that proves no switch. Until a member
// that goes on has said so, the leaver may be needed once more, and the next prepare voids its
// word.
Reason on_drained(Turn& turn, Member& member, const wire::Leave& message) {
  State& state = turn.state;
  if (!is_valid(message.applied(), turn.options)) return Reason::kRefusedMalformed;
  const bool is_planned_out = state.run == RunState::kStarted && state.planned &&
                              is_listed(state, member) &&
                              !contains(state.planned->ranks, member.id);
  if (is_planned_out || state.leavers.contains(member.id)) {
    if (member.leave) return Reason::kAlreadyCounted;
    member.leave = message;
    if (!is_planned_out) member.state = MemberState::kLeft;
    release_leavers(turn, false);
    return Reason::kDrained;
  }
  push_present(turn, member);  // a newer generation needs it
  return Reason::kRefusedStaleGeneration;
}

void release_leavers(Turn& turn, bool all) {
  State& state = turn.state;
  if (state.leavers.empty()) return;
  const bool is_over =
      std::all_of(state.source_members.begin(), state.source_members.end(), [&](MemberId id) {
        return turn.at(id).lived >= state.source_generation || !is_alive(turn.at(id));
      });
  if (!is_over && !all) return;
  for (auto it = state.leavers.begin(); it != state.leavers.end();) {
    Member& member = turn.at(*it);
    if (member.state != MemberState::kLeft && !all) {
      ++it;
      continue;
    }
    bid_farewell(turn, member, "it was left out by a planned change");
    turn.log(LogLine::Level::kInfo, "member_drained", describe(state, member) + " has left");
    it = state.leavers.erase(it);
  }
  state.change_due = true;
}

}  // namespace lockstep::coordinator
