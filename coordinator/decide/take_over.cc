// Begins a term with a generation that is alive: its members train on and will register.
#include "coordinator/decide/take_over.h"

#include <algorithm>

#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

void list_member(const LivingGeneration& living, const MemberEntry& entry, int64_t now_ms,
                 State& state) {
  Member member;
  member.id = entry.member;
  member.node = entry.node;
  member.local_rank = entry.local_rank;
  member.pid = entry.pid;
  member.heard_ms = now_ms;
  member.disconnected_ms = now_ms;
  member.disconnected_why = "the coordinator was started again";
  member.is_draining = state.ordered_to_leave.contains(member.id);
  const auto batch = living.batches.find(entry.member);
  if (batch != living.batches.end()) member.acked_batch = batch->second;
  state.by_process[{member.node, member.pid}] = member.id;
  state.experience.known[{member.node, member.pid}] = member.process;
  // A member with records of an older row may still have to prove that row.
  if (const auto worked = living.worked.find(entry.member); worked != living.worked.end())
    member.worked = worked->second;
  state.members[member.id] = std::move(member);
}

void place_living(const LivingGeneration& living, State& state) {
  for (const wire::MemberInfo& info : living.start.members()) {
    Member& member = state.members[info.member()];
    member.id = info.member();
    member.node = info.node();
    member.data = info.data();
    member.state = MemberState::kTraining;
    member.listed = living.generation;
    member.placed = living.generation;
    member.rank = info.rank();
    member.slots = {info.slots().begin(), info.slots().end()};
    member.step = living.row.first.step;
    state.ranks.push_back(member.id);
  }
  state.source_members = state.ranks;
}

void take_lineage(const LivingGeneration& living, State& state) {
  for (const LedgerRow& row : living.closed) state.lineage[row.generation] = Era{row, 0};
  state.lineage[living.generation] = Era{living.row, living.start.writer()};
  state.generations.push_back({living.generation, GenerationState::kStarted});
  state.source_generation = living.generation;
  state.generation = living.generation;
  state.start = living.start;
  state.resume = living.row.first;
  state.writer = living.start.writer();
}

void take_records(const LivingGeneration& living, State& state) {
  for (const RecordsEntry& batch : living.unfinished) {
    const auto member = state.members.find(batch.member);
    for (const wire::StepRecord& record : batch.records) {
      const auto era = state.lineage.find(batch.generation);
      if (era == state.lineage.end() || !era->second.row.covers(record.step())) continue;
      if (record.step() < state.completed) continue;
      count_report(state, batch.member, batch.generation, record);
      if (member == state.members.end()) continue;
      member->second.record_generation = batch.generation;
      member->second.next_record = record.step() + 1;
      member->second.step = std::max(member->second.step, record.step() + 1);
    }
  }
}

}  // namespace

void take_over(const Beginning& beginning, int64_t now_ms, State& state) {
  const LivingGeneration& living = *beginning.living;
  state.run = RunState::kStarted;
  state.is_take_over = true;
  begin_progress(state, now_ms);
  take_lineage(living, state);
  for (const MemberEntry& entry : living.members) list_member(living, entry, now_ms, state);
  place_living(living, state);
  take_records(living, state);
  Generation newest = living.generation;
  if (living.planned) {
    PlannedGeneration planned;
    planned.generation = living.planned->generation;
    planned.start = living.planned->start;
    for (const wire::MemberInfo& info : planned.start.members()) {
      planned.ranks.push_back(info.member());
    }
    newest = std::max(newest, planned.generation);
    state.generations.push_back({planned.generation, GenerationState::kPlanned});
    for (MemberId id : planned.ranks) {
      Member& member = state.members[id];
      member.id = id;
      if (member.listed == 0) state.waiting.insert(id);
    }
    state.planned = std::move(planned);
  }
  // A newer generation was prepared: members that have promised it do nothing any more.
  state.is_interrupted = beginning.generation > newest;
  recall_costs(state);
}

}  // namespace lockstep::coordinator
