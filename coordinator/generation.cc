// Prepares and starts generations.
#include <algorithm>
#include <tuple>

#include "comm/base/check.h"
#include "comm/collectives/bucket_plan.h"
#include "coordinator/decide_internal.h"
#include "coordinator/slots.h"

namespace lockstep::coordinator {
namespace {

constexpr double kBytesPerMib = 1024.0 * 1024.0;

void set_generation_state(Turn& turn, Generation generation, GenerationState to) {
  for (KnownGeneration& known : turn.state.generations) {
    if (known.generation != generation || known.state == to) continue;
    known.state = to;
    turn.persist(GenerationEntry{generation, turn.state.term, to, {}});
  }
}

void fill(wire::ResumePoint* out, const ResumePoint& point) {
  out->set_step(point.step);
  out->set_phase(static_cast<uint32_t>(point.phase));
}

// The largest answer of a member of the last started generation wins; without one the term's own
// beginning is the state.
void choose_resume_point(Turn& turn, wire::Start* start) {
  State& state = turn.state;
  std::optional<ResumePoint> best;
  const auto can_be_source = [&](MemberId id) {
    return state.members.at(id).promised.has_value() &&
           std::find(state.source_members.begin(), state.source_members.end(), id) !=
               state.source_members.end();
  };
  for (MemberId id : state.ranks) {
    if (can_be_source(id)) best = std::max(best, state.members.at(id).promised);
  }
  state.resume = best.value_or(state.base);
  fill(start->mutable_resume(), state.resume);
  wire::StateSource* source = start->mutable_source();
  if (best) {
    for (MemberId id : state.ranks) {
      if (can_be_source(id) && state.members.at(id).promised == best) source->add_members(id);
    }
  } else if (state.base_checkpoint.empty()) {
    source->set_fresh(true);
  } else {
    source->set_checkpoint_path(state.base_checkpoint);
  }
}

void place_members(Turn& turn, wire::Start* start) {
  State& state = turn.state;
  const auto runs =
      assign_slots(static_cast<uint32_t>(state.ranks.size()), turn.options.shape.slots);
  for (uint32_t rank = 0; rank < state.ranks.size(); ++rank) {
    Member& member = state.members.at(state.ranks[rank]);
    member.rank = rank;
    member.slots = runs[rank];
    member.state = MemberState::kTraining;
    member.step = std::max(member.step, state.resume.step);
    member.next_record = state.resume.step;
    wire::MemberInfo* info = start->add_members();
    info->set_member(member.id);
    info->set_rank(rank);
    info->mutable_slots()->set_begin(runs[rank].begin);
    info->mutable_slots()->set_end(runs[rank].end);
    *info->mutable_data() = member.data;
    info->set_node(member.node);
  }
  turn.persist(SlotMapEntry{state.generation, state.ranks, runs});
}

// One row ends where the next begins.
void open_ledger_row(Turn& turn, const std::string& reason) {
  State& state = turn.state;
  if (state.open_row) {
    state.open_row->last = state.resume;
    turn.persist(LedgerEntry{*state.open_row});
  }
  state.open_row = LedgerRow{state.generation, state.resume, std::nullopt, false, reason};
  turn.persist(LedgerEntry{*state.open_row});
}

void push_start(Turn& turn, const Member& member) {
  wire::Envelope envelope;
  *envelope.mutable_start() = turn.state.start;
  turn.send(member.connection, std::move(envelope));
}

void push_prepare(Turn& turn, const Member& member) {
  wire::Envelope envelope;
  wire::Prepare* prepare = envelope.mutable_prepare();
  for (MemberId id : turn.state.ranks) prepare->add_members(id);
  turn.send(member.connection, std::move(envelope));
}

}  // namespace

void prepare_generation(Turn& turn, const std::string& why) {
  State& state = turn.state;
  if (state.run == RunState::kPrepared) {
    set_generation_state(turn, state.generation, GenerationState::kAbandoned);
  }
  ++state.generation;
  state.run = RunState::kPrepared;
  state.prepared_ms = turn.now_ms;
  state.ranks.clear();
  for (auto& [id, member] : state.members) {
    if (member.state == MemberState::kDead || member.state == MemberState::kLeft) continue;
    member.state = MemberState::kRegistered;
    member.promised.reset();
    state.ranks.push_back(id);
  }
  // Ranks of one node lie together, and the same machine gets the same ranks again after a restart.
  std::sort(state.ranks.begin(), state.ranks.end(), [&](MemberId a, MemberId b) {
    const Member& x = state.members.at(a);
    const Member& y = state.members.at(b);
    return std::tie(x.node, x.local_rank, x.id) < std::tie(y.node, y.local_rank, y.id);
  });
  state.generations.push_back({state.generation, GenerationState::kPrepared});
  turn.persist(
      GenerationEntry{state.generation, state.term, GenerationState::kPrepared, state.ranks});
  turn.log(LogLine::Level::kInfo, "generation_prepared",
           "generation " + std::to_string(state.generation) + " of " +
               std::to_string(state.ranks.size()) + " workers is prepared: " + why);
  for (MemberId id : state.ranks) push_prepare(turn, state.members.at(id));
}

Reason start_generation(Turn& turn) {
  State& state = turn.state;
  wire::Start start;
  choose_resume_point(turn, &start);
  const Member& first = state.members.at(state.ranks.front());
  const auto bucket_bytes =
      static_cast<uint64_t>(turn.options.job.comm().bucket_mb() * kBytesPerMib);
  const auto buckets = plan_buckets(first.tensor_bounds, first.flat_elements, bucket_bytes);
  if (!buckets.is_ok()) {
    end_run(
        turn, 70,
        "the workers' gradient layout cannot be cut into buckets: " + buckets.status().message());
    return Reason::kEndedLayout;
  }
  for (uint64_t bound : *buckets) start.mutable_buckets()->add_bounds(bound);
  place_members(turn, &start);
  start.set_total_steps(turn.options.total_steps);
  start.set_writer(first.id);

  if (state.source_generation != 0) {
    set_generation_state(turn, state.source_generation, GenerationState::kClosed);
  }
  set_generation_state(turn, state.generation, GenerationState::kStarted);
  open_ledger_row(turn, state.base_checkpoint.empty() ? "start" : "resume");
  if (!state.is_identity_stored) {
    for (const IdentityEntry& entry : turn.options.identity) turn.persist(entry);
    state.is_identity_stored = true;
  }
  state.run = RunState::kStarted;
  state.writer = first.id;
  state.source_generation = state.generation;
  state.source_members = state.ranks;
  state.completed = state.resume.step;
  state.pending.clear();
  state.start = std::move(start);
  turn.log(LogLine::Level::kInfo, "generation_started",
           "generation " + std::to_string(state.generation) + " starts after step " +
               std::to_string(state.resume.step) + " of " +
               std::to_string(turn.options.total_steps));
  for (MemberId id : state.ranks) push_start(turn, state.members.at(id));
  return Reason::kStarted;
}

void push_present(Turn& turn, const Member& member) {
  const State& state = turn.state;
  const bool is_present =
      std::find(state.ranks.begin(), state.ranks.end(), member.id) != state.ranks.end();
  if (!is_present) return;
  if (state.run == RunState::kPrepared) push_prepare(turn, member);
  if (state.run != RunState::kStarted) return;
  push_start(turn, member);
  if (state.stop_ms) {
    wire::Envelope envelope;
    envelope.mutable_stop()->set_reason(state.stop_reason);
    turn.send(member.connection, std::move(envelope));
  }
}

}  // namespace lockstep::coordinator
