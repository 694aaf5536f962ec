#include "coordinator/decide/invariants.h"

#include <algorithm>
#include <set>

#include "comm/base/check.h"
#include "coordinator/state/evaluations.h"

namespace lockstep::coordinator {
namespace {

const Member* sender_of(const State& state, const Event& event) {
  const auto* message = std::get_if<MessageReceived>(&event);
  if (message == nullptr) return nullptr;
  const auto it = state.by_connection.find(message->connection);
  return it == state.by_connection.end() ? nullptr : &state.members.at(it->second);
}

bool has_rollback(const Decision& decision) {
  return std::any_of(decision.actions.begin(), decision.actions.end(), [](const Action& action) {
    const auto* persist = std::get_if<Persist>(&action);
    return persist != nullptr && std::holds_alternative<RollbackEntry>(persist->entry);
  });
}

// I3
void check_nothing_went_back(const StateMark& before, const Decision& decision) {
  const State& now = decision.state;
  LOCKSTEP_CHECK(now.term == before.term, "I3: a term never changes within a process");
  LOCKSTEP_CHECK(now.generation >= before.generation, "I3: generations never go back");
  LOCKSTEP_CHECK(now.last_generation >= before.last_generation, "I3: nor planned ones");
  LOCKSTEP_CHECK(now.source_generation >= before.source_generation, "I3: nor started ones");
  LOCKSTEP_CHECK(now.next_member >= before.next_member, "I3: member ids are never used twice");
  LOCKSTEP_CHECK(now.in_history >= before.in_history, "S4: history gets each step once");
  LOCKSTEP_CHECK(before.run != RunState::kEnded || now.run == RunState::kEnded,
                 "I3: a run that ended never comes back");
  LOCKSTEP_CHECK(before.run != RunState::kTermEnded || now.run == RunState::kTermEnded,
                 "I3: nor does a term");
  if (has_rollback(decision)) return;
  LOCKSTEP_CHECK(now.completed >= before.completed, "I3: steps never go back");
  if (before.member == 0) return;
  const auto it = now.members.find(before.member);
  LOCKSTEP_CHECK(it != now.members.end(), "I3: members are never forgotten");
  LOCKSTEP_CHECK(it->second.step >= before.member_step, "I3: a member's step never goes back");
  LOCKSTEP_CHECK(it->second.acked_batch >= before.member_acked_batch, "I3: nor do its batches");
}

struct IsHarmless {
  bool operator()(const Persist& action) const {
    return std::holds_alternative<EventEntry>(action.entry);
  }
  bool operator()(const AppendHistory&) const { return false; }
  template <typename T>
  bool operator()(const T&) const {
    return true;
  }
};

// I4, judged from the envelope alone, not from what the fence said.
void check_other_terms_write_nothing(const StateMark& before, const Event& event,
                                     const Decision& decision) {
  const auto* message = std::get_if<MessageReceived>(&event);
  if (message == nullptr || before.member == 0) return;
  const wire::Envelope& e = message->envelope;
  const bool is_fenced = e.has_promise() || e.has_step_records() || e.has_checkpoint() ||
                         e.has_switched() || e.has_leave() || e.has_peer_suspect();
  if (!is_fenced || e.term() == before.term) return;
  LOCKSTEP_CHECK(std::all_of(decision.actions.begin(), decision.actions.end(),
                             [](const Action& a) { return std::visit(IsHarmless{}, a); }),
                 "I4: nothing of another term takes effect");
}

bool is_covered(const State& state, Generation generation, Step step) {
  const auto era = state.lineage.find(generation);
  return era != state.lineage.end() && era->second.row.covers(step);
}

// I4, S2
void check_only_lineage_is_kept(const Decision& decision) {
  if (has_rollback(decision)) return;
  const State& state = decision.state;
  for (const Action& action : decision.actions) {
    const auto* persist = std::get_if<Persist>(&action);
    if (persist == nullptr) continue;
    if (const auto* step = std::get_if<StepEntry>(&persist->entry)) {
      LOCKSTEP_CHECK(is_covered(state, step->generation, step->step),
                     "S2: a complete step is one that a row covers");
    }
    if (const auto* batch = std::get_if<RecordsEntry>(&persist->entry)) {
      for (const wire::StepRecord& record : batch->records) {
        LOCKSTEP_CHECK(is_covered(state, batch->generation, record.step()),
                       "I4: a record is kept only if a row covers its step");
      }
    }
  }
}

// I7
void check_generations(const State& state) {
  const auto count = [&](GenerationState which) {
    return std::count_if(state.generations.begin(), state.generations.end(),
                         [which](const KnownGeneration& g) { return g.state == which; });
  };
  LOCKSTEP_CHECK(count(GenerationState::kStarted) <= 1, "I7: at most one started generation");
  LOCKSTEP_CHECK(count(GenerationState::kPrepared) <= 1, "I7: at most one prepared generation");
  LOCKSTEP_CHECK(count(GenerationState::kPlanned) == (state.planned ? 1 : 0),
                 "I7: at most one planned generation");
  LOCKSTEP_CHECK(!state.planned || state.planned->generation > state.source_generation,
                 "I7: a planned generation is newer than the started one");
  LOCKSTEP_CHECK(state.run != RunState::kStarted || count(GenerationState::kStarted) == 1,
                 "I7: who trains has a started generation");
  const bool is_over = state.run == RunState::kEnded || state.run == RunState::kTermEnded;
  LOCKSTEP_CHECK(!is_over || state.generations.empty(), "I7: nothing is open after the end");
  for (size_t i = 1; i < state.generations.size(); ++i) {
    LOCKSTEP_CHECK(state.generations[i - 1].generation < state.generations[i].generation,
                   "I7: generation numbers are never used twice");
  }
}

// S1, S3. Only when the generation is new: they grow with the members, events come by thousands.
void check_ranks(const State& state, const Options& options) {
  uint32_t slot = 0;
  uint32_t rank = 0;
  LOCKSTEP_CHECK(state.ranks == state.source_members, "S3: who trains can be a source");
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    LOCKSTEP_CHECK(member.placed == state.generation && member.listed == state.generation,
                   "S1: every rank is placed in the present generation");
    LOCKSTEP_CHECK(!state.checks.expelled.contains(place_of(member)),
                   "C1: who computed wrong takes no part, least of all as a source");
    LOCKSTEP_CHECK(member.rank == rank++, "S1: ranks are positions");
    LOCKSTEP_CHECK(member.slots.begin == slot && member.slots.end >= slot, "S1: runs follow on");
    slot = member.slots.end;
  }
  LOCKSTEP_CHECK(slot == options.shape.slots, "S1: every slot has an owner");
  std::set<MemberId> ranks(state.ranks.begin(), state.ranks.end());
  for (MemberId id : state.start.source().members()) {
    LOCKSTEP_CHECK(ranks.contains(id), "S3: a source is a member");
  }
}

// S2
void check_steps(const State& state, const Options& options) {
  LOCKSTEP_CHECK(!options.is_open_term() || state.generations.empty(),
                 "G2: no generation is prepared before it is known what the run is");
  LOCKSTEP_CHECK(state.completed <= last_step(state, options), "S2, E2: a run has an end");
  LOCKSTEP_CHECK(state.pending.empty() || state.pending.begin()->first >= state.completed,
                 "S2: what is pending is not complete");
  if (state.source_generation == 0) return;
  const LedgerRow& row = state.lineage.at(state.source_generation).row;
  const bool is_over = state.run == RunState::kEnded || state.run == RunState::kTermEnded;
  LOCKSTEP_CHECK(is_over || !row.last, "S2: the started generation's row is open");
}

}  // namespace

StateMark mark_of(const State& state, const Event& event) {
  StateMark mark;
  mark.term = state.term;
  mark.generation = state.generation;
  mark.source_generation = state.source_generation;
  mark.last_generation = state.last_generation;
  mark.in_history = state.in_history;
  mark.next_member = state.next_member;
  mark.completed = state.completed;
  mark.run = state.run;
  if (const Member* sender = sender_of(state, event)) {
    mark.member = sender->id;
    mark.member_step = sender->step;
    mark.member_acked_batch = sender->acked_batch;
  }
  return mark;
}

void check_invariants(const StateMark& before, const Event& event, const Decision& decision,
                      const Options& options) {
  const State& state = decision.state;
  check_nothing_went_back(before, decision);
  check_other_terms_write_nothing(before, event, decision);
  check_only_lineage_is_kept(decision);
  check_generations(state);
  check_steps(state, options);
  if (state.run == RunState::kStarted &&
      (before.run != RunState::kStarted || before.generation != state.generation)) {
    check_ranks(state, options);
  }
}

}  // namespace lockstep::coordinator
