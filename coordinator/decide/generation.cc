// Prepares and starts generations.
#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/planted_bug.h"
#include "comm/collectives/bucket_plan.h"
#include "comm/run/job/bucket_size.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/evaluations.h"
#include "coordinator/state/slots.h"

namespace lockstep::coordinator {
namespace {

// Whether some member that goes on from `best` has not run the script's code there. Each member
// runs it for itself, so the one that is behind says where all go on.
bool lacks_edge(const Turn& turn, const ResumePoint& best) {
  const std::vector<MemberId>& ranks = turn.state.ranks;
  return std::any_of(ranks.begin(), ranks.end(), [&](MemberId id) {
    const Member& member = turn.state.members.at(id);
    return holds(turn, member, best) && !is_after_edge(member.answer->applied->phase);
  });
}

// Chooses where to go on: the largest answer of the members that hold a state of the lineage wins.
// Without one the term's own beginning is the state.
void choose_resume_point(Turn& turn, const std::optional<ResumePoint>& best, wire::Start* start) {
  State& state = turn.state;
  state.resume = best.value_or(state.base);
  const Step step = state.resume.step;
  const Step end = end_step(state, turn.options);
  if (is_evaluated_after(step, turn.options, state.script_end) && !state.evals.contains(step) &&
      !LOCKSTEP_BUG(kEvalReportedByOne)) {
    // Overrides the answers: the evaluation's result may have been on its way from dead members.
    state.resume.phase = Phase::kEval;
  } else if (has_edge_after(step, end, turn.options) &&
             (best ? lacks_edge(turn, *best) : !is_after_edge(state.resume.phase))) {
    state.resume.phase = Phase::kEdge;
  } else if (!is_after_edge(state.resume.phase)) {
    state.resume.phase = step >= end ? Phase::kEnd : Phase::kTrain;
  } else if (state.resume.phase == Phase::kTrain && step >= last_step(state, turn.options)) {
    state.resume.phase = Phase::kEnd;  // it stands at the script's end, and did not know
  }
  // The members that do not write the last checkpoint are done before it is there; its writer may
  // be dead.
  if (state.resume.phase == Phase::kEnd && !has_last_checkpoint(turn, state.resume.step)) {
    state.resume.phase = Phase::kCheckpoint;
  }
  *start->mutable_resume() = to_wire(state.resume);
  put_track(track_until(step, state.evals, state.checkpoints, turn.options),
            start->mutable_evals());
  wire::StateSource* source = start->mutable_source();
  if (best) {
    for (MemberId id : state.ranks) {
      if (holds(turn, turn.at(id), *best)) source->add_members(id);
    }
  } else if (state.base_checkpoint.empty()) {
    source->set_fresh(true);
  } else {
    source->set_checkpoint_path(state.base_checkpoint);
  }
}

bool plan_buckets_of(Turn& turn, wire::Start* start) {
  const Layout& layout = *turn.state.layout;
  const wire::CommSpec& comm = turn.options.job.comm();
  const auto buckets = plan_buckets(layout.tensor_bounds, layout.flat_elements,
                                    bucket_bytes(comm, comm.backend() == "nccl"));
  if (!buckets.is_ok()) {
    end_run(
        turn, 70,
        "the workers' gradient layout cannot be cut into buckets: " + buckets.status().message());
    return false;
  }
  for (uint64_t bound : *buckets) start->mutable_buckets()->add_bounds(bound);
  return true;
}

std::vector<ConnectionId> connections_of(const Turn& turn, const std::vector<MemberId>& members) {
  std::vector<ConnectionId> found;
  for (MemberId id : members) found.push_back(turn.state.members.at(id).connection);
  return found;
}

void push_start(Turn& turn, const std::vector<ConnectionId>& to) {
  wire::Envelope envelope;
  *envelope.mutable_start() = turn.state.start;
  turn.send_to(to, turn.state.generation, std::move(envelope));
}

void push_prepare(Turn& turn, const std::vector<ConnectionId>& to) {
  wire::Envelope envelope;
  wire::Prepare* prepare = envelope.mutable_prepare();
  for (MemberId id : turn.state.ranks) prepare->add_members(id);
  turn.send_to(to, turn.state.generation, std::move(envelope));
}

// Notes the steps that each member has computed itself, as long as they have to be proven.
void note_worked(Turn& turn) {
  State& state = turn.state;
  for (MemberId id : state.ranks) {
    Member& member = turn.at(id);
    std::erase_if(member.worked, [&](const WorkedSteps& w) { return w.last <= state.completed; });
    const Answer& answer = *member.answer;
    if (!answer.applied || answer.lived == 0) continue;
    if (answer.applied->step > answer.since.step) {
      member.worked.push_back({answer.lived, answer.since.step, answer.applied->step});
    }
  }
}

// The planned change has happened unseen if a member lived in it; else it never will. Nothing: it
// did not come to an end of the run.
std::optional<Reason> settle_planned(Turn& turn) {
  State& state = turn.state;
  if (!state.planned) return std::nullopt;
  for (MemberId id : state.ranks) {
    const Answer& answer = *turn.at(id).answer;
    if (answer.lived != state.planned->generation) continue;
    if (const Reason reason = adopt_switch(turn, answer.since); is_end(reason)) return reason;
    return std::nullopt;
  }
  set_generation_state(turn, state.planned->generation, GenerationState::kAbandoned);
  state.planned.reset();
  return std::nullopt;
}

// Nothing: it can start, from `best`.
std::optional<Reason> judge_start(Turn& turn, const std::optional<ResumePoint>& best) {
  State& state = turn.state;
  const bool is_first = state.source_generation == 0;
  if (!best && !is_first) {
    return end_term(turn, "none of " + describe(state, state.ranks) +
                              " holds the state any more; the run goes on from the newest "
                              "checkpoint");
  }
  if (const auto reason = judge_poison(turn, best ? best->step : state.base.step)) return reason;
  if (is_first) return std::nullopt;
  if (const std::string what = unprovable_step(turn, best->step); !what.empty()) {
    return end_term(turn, what + "; the run goes on from the newest checkpoint");
  }
  const Step begun = state.lineage.at(state.source_generation).row.first.step;
  if (best->step < std::max(begun, state.completed) && !roll_back_in_place(turn, *best)) {
    return end_term(turn, "the only worker that had applied step " +
                              std::to_string(state.completed) +
                              " is gone, and its numbers are in the history; the run goes on "
                              "from the newest checkpoint");
  }
  return std::nullopt;
}

// Members that stand where the generation begins say whether the script ended the run there.
void learn_of_end(Turn& turn, const ResumePoint& best) {
  for (const MemberId id : turn.state.ranks) {
    const Member& member = turn.at(id);
    if (holds(turn, member, best) && member.answer->is_end) end_by_script(turn, best.step);
  }
}

void open_generation(Turn& turn, wire::Start start) {
  State& state = turn.state;
  const bool is_first = state.source_generation == 0;
  if (!is_first) set_generation_state(turn, state.source_generation, GenerationState::kClosed);
  state.start = std::move(start);
  set_generation_state(turn, state.generation, GenerationState::kStarted, &state.start);
  turn_page(turn, state.generation, state.resume,
            !is_first                       ? "death"
            : state.base_checkpoint.empty() ? "start"
                                            : "resume");
  if (!state.is_identity_stored) {
    for (const IdentityEntry& entry : turn.options.identity) turn.persist(entry);
    state.is_identity_stored = true;
  }
  state.run = RunState::kStarted;
  state.is_switched = false;
  state.source_members = state.ranks;
  if (!LOCKSTEP_BUG(kPendingKeptOverRedo))
    state.pending.erase(state.pending.lower_bound(state.resume.step), state.pending.end());
  state.suspicion.reset();
  state.end_ms.reset();
  state.change_due = true;
}

}  // namespace

void set_generation_state(Turn& turn, Generation generation, GenerationState to,
                          const wire::Start* start) {
  auto& known = turn.state.generations;
  const auto it = std::find_if(known.begin(), known.end(), [&](const KnownGeneration& g) {
    return g.generation == generation;
  });
  if (it == known.end() || it->state == to) return;
  it->state = to;
  GenerationEntry entry{generation, turn.state.term, to, {}, {}};
  if (start != nullptr) entry.start = start->SerializeAsString();
  turn.persist(std::move(entry));
  if (to == GenerationState::kClosed || to == GenerationState::kAbandoned) known.erase(it);
}

void prepare_generation(Turn& turn, std::vector<MemberId> members, const std::string& why) {
  State& state = turn.state;
  if (state.run == RunState::kPrepared) {
    set_generation_state(turn, state.generation, GenerationState::kAbandoned);
  }
  sort_naturally(state, members);
  // A member that was to join with the generation that is given up waits again.
  for (MemberId id : state.ranks) {
    const Member& member = turn.at(id);
    if (is_alive(member) && !is_source(state, member)) state.waiting.insert(id);
  }
  state.generation = ++state.last_generation;
  state.run = RunState::kPrepared;
  state.prepared_ms = turn.now_ms;
  state.stood_still.reset();
  state.suspicion.reset();
  state.end_ms.reset();
  state.ranks = std::move(members);
  for (MemberId id : state.ranks) {
    Member& member = turn.at(id);
    member.state = MemberState::kRegistered;
    member.listed = state.generation;
    member.answer.reset();
    member.leave.reset();  // a member that was done has to see the others through
    state.waiting.erase(id);
    state.leavers.erase(id);
  }
  state.generations.push_back({state.generation, GenerationState::kPrepared});
  turn.persist(
      GenerationEntry{state.generation, state.term, GenerationState::kPrepared, state.ranks, {}});
  turn.log(LogLine::Level::kInfo, "generation_prepared",
           "generation " + std::to_string(state.generation) + " of " +
               counted(state.ranks.size(), "worker") + " is prepared: " + why);
  push_prepare(turn, connections_of(turn, state.ranks));
}

void place_members(const Turn& turn, const std::vector<MemberId>& ranks, wire::Start* start) {
  const auto runs = assign_slots(slot_costs(turn, ranks), node_of_rank(turn.state, ranks),
                                 turn.options.shape.slots);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const Member& member = turn.state.members.at(ranks[rank]);
    wire::MemberInfo* info = start->add_members();
    info->set_member(member.id);
    info->set_rank(rank);
    info->mutable_slots()->set_begin(runs[rank].begin);
    info->mutable_slots()->set_end(runs[rank].end);
    *info->mutable_data() = member.data;
    info->set_node(member.node);
  }
}

MemberId writer_of(const wire::Start& start) {
  const auto& holders = start.source().members();
  return holders.empty() ? start.members(0).member() : holders.Get(0);
}

namespace {

void note_copy(const State& state, Member& member) {
  const auto& holders = state.start.source().members();
  if (holders.empty())
    member.copied_at.reset();
  else if (std::find(holders.begin(), holders.end(), member.id) == holders.end())
    member.copied_at = state.resume.step;
}

}  // namespace

void take_places(Turn& turn, Generation generation) {
  State& state = turn.state;
  SlotMapEntry map{generation, {}, {}};
  for (const wire::MemberInfo& info : state.start.members()) {
    Member& member = turn.at(info.member());
    member.rank = info.rank();
    member.slots = {info.slots().begin(), info.slots().end()};
    member.placed = generation;
    member.step = std::max(member.step, state.resume.step);
    member.phase = state.resume.phase;
    member.progress = {state.resume.step, state.resume.phase, 0};
    note_copy(state, member);
    map.members.push_back(member.id);
    map.runs.push_back(member.slots);
  }
  turn.persist(std::move(map));
  state.writer = state.start.writer();
  begin_progress(state, turn.now_ms);
}

void turn_page(Turn& turn, Generation next, const ResumePoint& at, const std::string& reason) {
  State& state = turn.state;
  if (state.source_generation != 0) {
    LedgerRow& row = state.lineage.at(state.source_generation).row;
    if (!row.rolled_back && !LOCKSTEP_BUG(kRowNotClosed)) {
      row.last = at;
      turn.persist(LedgerEntry{row});
    }
    // Such a checkpoint holds a step that only its writer had applied, and the writer is dead.
    void_checkpoints(turn, [&](const CheckpointEntry& entry) { return entry.step > at.step; });
  }
  const LedgerRow row{next, at, std::nullopt, false, reason};
  state.lineage[next] = Era{row, state.start.writer()};
  turn.persist(LedgerEntry{row});
  state.source_generation = next;
}

namespace {

// REQUIRES: all members of the prepared generation have promised.
Reason start_generation(Turn& turn) {
  State& state = turn.state;
  if (const auto reason = settle_planned(turn)) return *reason;
  note_worked(turn);
  const std::optional<ResumePoint> best = best_answer(turn);
  if (const auto reason = judge_start(turn, best)) return *reason;
  if (best) learn_of_end(turn, *best);
  // No member begins with a state that is known to be spoilt.
  if (best) complete_steps(turn, best->step);
  if (const auto reason = judge_bad_loss(turn)) return *reason;
  wire::Start start;
  choose_resume_point(turn, best, &start);
  if (!plan_buckets_of(turn, &start)) return Reason::kEndedLayout;
  place_members(turn, state.ranks, &start);
  start.set_total_steps(last_step(state, turn.options));
  start.set_lineage_id(state.lineage_id);
  start.set_writer(writer_of(start));
  fill_skips(state, &start);
  open_generation(turn, std::move(start));
  take_places(turn, state.generation);
  for (MemberId id : state.ranks) turn.at(id).state = MemberState::kTraining;
  turn.log(LogLine::Level::kInfo, "generation_started",
           "generation " + std::to_string(state.generation) + " starts after step " +
               std::to_string(state.resume.step) + " of " +
               std::to_string(end_step(state, turn.options)) + " with " +
               counted(state.ranks.size(), "worker"));
  note_lost_best(turn);
  push_start(turn, connections_of(turn, state.ranks));
  for (MemberId id : state.ranks) push_stop(turn, turn.at(id));
  release_leavers(turn, true);
  complete_steps(turn);
  return Reason::kStarted;
}

bool have_all_promised(const State& state) {
  return std::all_of(state.ranks.begin(), state.ranks.end(), [&](MemberId id) {
    return state.members.at(id).state == MemberState::kPromised;
  });
}

}  // namespace

Reason start_if_ready(Turn& turn, Reason otherwise) {
  const bool is_ready = turn.state.run == RunState::kPrepared && have_all_promised(turn.state) &&
                        !awaits_word_of_dead(turn);
  return is_ready ? start_generation(turn) : otherwise;
}

void push_present(Turn& turn, const Member& member) {
  const State& state = turn.state;
  if (state.run == RunState::kPrepared && is_listed(state, member))
    push_prepare(turn, {member.connection});
  if (state.run != RunState::kStarted) return;
  if (is_listed(state, member)) {
    // A worker obeys a start only of what it has promised; to a switch it comes by itself.
    if (!state.is_switched || member.lived >= state.generation)
      push_start(turn, {member.connection});
    push_stop(turn, member);
  }
  push_planned(turn, member);
}

}  // namespace lockstep::coordinator
