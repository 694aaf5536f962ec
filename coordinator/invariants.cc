#include "coordinator/invariants.h"

#include <algorithm>

#include "comm/base/check.h"

namespace lockstep::coordinator {
namespace {

const Member* sender_of(const State& state, const Event& event) {
  const auto* message = std::get_if<MessageReceived>(&event);
  if (message == nullptr) return nullptr;
  const auto it = state.by_connection.find(message->connection);
  return it == state.by_connection.end() ? nullptr : &state.members.at(it->second);
}

// I3
void check_nothing_went_back(const Mark& before, const State& now) {
  LOCKSTEP_CHECK(now.term == before.term, "I3: a term never changes within a process");
  LOCKSTEP_CHECK(now.generation >= before.generation, "I3: generations never go back");
  LOCKSTEP_CHECK(now.source_generation >= before.source_generation, "I3: nor started ones");
  LOCKSTEP_CHECK(now.next_member >= before.next_member, "I3: member ids are never used twice");
  LOCKSTEP_CHECK(now.completed >= before.completed, "I3: steps never go back");
  LOCKSTEP_CHECK(before.run != RunState::kEnded || now.run == RunState::kEnded,
                 "I3: a run that ended never comes back");
  if (before.member == 0) return;
  const auto it = now.members.find(before.member);
  LOCKSTEP_CHECK(it != now.members.end(), "I3: members are never forgotten");
  LOCKSTEP_CHECK(it->second.step >= before.member_step, "I3: a member's step never goes back");
  LOCKSTEP_CHECK(it->second.acked_batch >= before.member_acked_batch, "I3: nor do its batches");
  LOCKSTEP_CHECK(it->second.next_record >= before.member_next_record, "I3: nor its records");
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
void check_old_writes_nothing(const Mark& before, const Event& event, const Decision& decision) {
  const auto* message = std::get_if<MessageReceived>(&event);
  if (message == nullptr || before.member == 0) return;
  const wire::Envelope& e = message->envelope;
  const bool is_work = e.has_promise() || e.has_step_records() || e.has_eval() ||
                       e.has_checkpoint() || e.has_switched();
  const Generation generation = e.has_promise() ? e.promise().generation() : e.generation();
  if (!is_work || (e.term() == before.term && generation == before.generation)) return;
  LOCKSTEP_CHECK(std::all_of(decision.actions.begin(), decision.actions.end(),
                             [](const Action& a) { return std::visit(IsHarmless{}, a); }),
                 "I4: nothing of another term or generation takes effect");
}

// I7
void check_generations(const State& state) {
  const auto count = [&](GenerationState which) {
    return std::count_if(state.generations.begin(), state.generations.end(),
                         [which](const KnownGeneration& g) { return g.state == which; });
  };
  LOCKSTEP_CHECK(count(GenerationState::kStarted) <= 1, "I7: at most one started generation");
  LOCKSTEP_CHECK(count(GenerationState::kPrepared) <= 1, "I7: at most one prepared generation");
  LOCKSTEP_CHECK(state.run != RunState::kStarted || count(GenerationState::kStarted) == 1,
                 "I7: who trains has a started generation");
  LOCKSTEP_CHECK(state.run != RunState::kEnded || (count(GenerationState::kStarted) == 0 &&
                                                   count(GenerationState::kPrepared) == 0),
                 "I7: nothing is open after the end");
  for (size_t i = 1; i < state.generations.size(); ++i) {
    LOCKSTEP_CHECK(state.generations[i - 1].generation < state.generations[i].generation,
                   "I7: generation numbers are never used twice");
  }
}

// S1, S2
void check_ranks(const State& state, const Options& options) {
  if (state.run != RunState::kStarted) return;
  uint32_t slot = 0;
  uint32_t rank = 0;
  for (MemberId id : state.ranks) {
    const Member& member = state.members.at(id);
    LOCKSTEP_CHECK(member.rank == rank++, "S1: ranks are positions");
    LOCKSTEP_CHECK(member.slots.begin == slot && member.slots.end >= slot, "S1: runs follow on");
    slot = member.slots.end;
    LOCKSTEP_CHECK(member.next_record >= state.completed, "S2: completed steps are reported");
  }
  LOCKSTEP_CHECK(slot == options.shape.slots, "S1: every slot has an owner");
  LOCKSTEP_CHECK(state.completed <= options.total_steps, "S2: a run has an end");
}

}  // namespace

Mark mark_of(const State& state, const Event& event) {
  Mark mark;
  mark.term = state.term;
  mark.generation = state.generation;
  mark.source_generation = state.source_generation;
  mark.next_member = state.next_member;
  mark.completed = state.completed;
  mark.run = state.run;
  if (const Member* sender = sender_of(state, event)) {
    mark.member = sender->id;
    mark.member_step = sender->step;
    mark.member_next_record = sender->next_record;
    mark.member_acked_batch = sender->acked_batch;
  }
  return mark;
}

void check_invariants(const Mark& before, const Event& event, const Decision& decision,
                      const Options& options) {
  check_nothing_went_back(before, decision.state);
  check_old_writes_nothing(before, event, decision);
  check_generations(decision.state);
  check_ranks(decision.state, options);
}

}  // namespace lockstep::coordinator
