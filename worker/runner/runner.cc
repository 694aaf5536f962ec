#include "worker/runner/runner.h"

#include <utility>

#include "comm/collectives/bucket_plan.h"
#include "comm/collectives/node_levels.h"
#include "comm/collectives/recorded.h"
#include "comm/run/directory/layout.h"
#include "comm/run/job/bucket_size.h"

namespace lockstep {
namespace {

// Between two attempts of a worker that joins.
constexpr int kConnectPauseMs = 100;

// The peers cannot be reached: they are gone, or already in a newer generation. The coordinator
// finds out which.
bool is_about_peers(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kRefused;
}

}  // namespace

Runner::Runner(Options options, Parts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      writer_(
          parts_.files,
          {rundir::file_in(options_.run_dir, rundir::kCheckpoints),
           options_.job.checkpoint().keep()},
          [this](Generation generation, wire::CheckpointReport report) {
            parts_.probe.checkpoint_written(report);
            parts_.port.report_checkpoint(generation, std::move(report));
          },
          parts_.logger),
      trace_(options_.job, options_.run_dir, parts_.logger) {}

void Runner::run() {
  parts_.probe.doing(RunnerProbe::Activity::kIdle);
  while (auto order = parts_.mailbox.next()) {
    Next next = Entry{std::move(*order), std::nullopt};
    while (next) next = run_generation(*next);
    if (parts_.gate.is_applying() || has_raised_) return;  // U8
    parts_.probe.doing(RunnerProbe::Activity::kIdle);
  }
}

Runner::Next Runner::run_generation(const Entry& entry) {
  parts_.probe.doing(RunnerProbe::Activity::kRecovery);
  auto life = make_life(entry);
  if (!life.is_ok()) {
    ended_with(entry.order, life.status(), 0);
    return std::nullopt;
  }
  if (parts_.flight != nullptr)
    parts_.flight->begin_generation({entry.order.generation, life->rank,
                                     static_cast<uint32_t>(entry.order.start.members_size())});
  Result<Next> next = live(*life);
  const MemberId broken = broken_member(*life);
  // U4. Nothing may return or be freed between these.
  if (!next.is_ok()) parts_.context.close(entry.order.generation);
  if (!next.is_ok() && life->devices) life->devices->abort();
  parts_.engine.end_generation();
  trace_.generation_ended(life->rank);
  if (next.is_ok()) return std::move(*next);
  ended_with(entry.order, next.status(), broken);
  return std::nullopt;
}

void Runner::ended_with(const StartOrder& order, const Status& status, MemberId broken) {
  // Once the generation is closed, every error follows from that, except for U8.
  has_raised_ = status.code() == Code::kRaised;
  const bool has_failed = parts_.gate.is_applying() || has_raised_;
  const bool closed = parts_.gate.is_closed(order.generation);
  if (!has_failed && (closed || status.code() == Code::kAborted)) {
    parts_.logger.info("generation_over", "generation over: " + status.message(),
                       {{"generation", order.generation}, {"broken", broken}});
    if (!closed) parts_.port.suspect(order.generation, broken, status.message());
    return;
  }
  parts_.logger.error("training_failed", status.message(), {{"generation", order.generation}});
  parts_.port.leave(order.generation, wire::Leave::FAILED, status, parts_.gate.standing().applied);
  parts_.on_failure(status);
}

// The member whose loss was seen, 0 if none was.
MemberId Runner::broken_member(const Life& life) const {
  const int64_t rank =
      life.collective ? life.collective->broken_rank() : parts_.context.unreachable_rank();
  const auto& members = life.order.start.members();
  return rank >= 0 && rank < members.size() ? members[static_cast<int>(rank)].member() : 0;
}

PhasePlan Runner::plan_of(const wire::Start& start) const {
  return make_phase_plan(options_.job, options_.facts, start.total_steps(), options_.has_edges);
}

Result<Runner::Life> Runner::make_life(const Entry& entry) const {
  const StartOrder& order = entry.order;
  Life life(entry);
  const auto rank = rank_of(order.start, order.member);
  if (!rank)
    return Status(Code::kInternal, "generation " + std::to_string(order.generation) +
                                       " was started without this worker, member " +
                                       std::to_string(order.member));
  life.rank = *rank;
  life.is_writer = order.start.writer() == order.member;
  life.plan = plan_of(order.start);
  life.begin = entry.since;
  life.track = track_;
  if (order.planned) return life;
  // A member that gets the state from a peer gets the peer's track with it, which may know more
  // than the start.
  life.track = holds_state(order.start, order.member) ? track_at(order.start, track_, life.plan.by)
                                                      : track_of(order.start.evals());
  life.plan.end_with(life.track, order.start.total_steps());
  const bool has_own = holds_state(order.start, order.member);
  life.begin =
      begin_of(order.start, has_own ? parts_.gate.standing().applied : std::nullopt, life.plan);
  return life;
}

Result<Runner::Next> Runner::live(Life& life) {
  const StartOrder& order = life.order;
  // After a planned change the writer before may still be at work.
  if (life.is_writer && !order.planned) writer_.clean_up(order.generation);
  LOCKSTEP_RETURN_IF_ERROR(connect(life));
  LOCKSTEP_RETURN_IF_ERROR(install_state(life));
  track_ = life.track;
  if (!life.entered) LOCKSTEP_RETURN_IF_ERROR(enter(order, *life.begin));
  LOCKSTEP_RETURN_IF_ERROR(begin_engine(life));
  const wire::SlotRange& slots = order.start.members(static_cast<int>(life.rank)).slots();
  parts_.probe.generation_started(order.generation, order.member,
                                  {.rank = life.rank,
                                   .world = life.collective->world_size(),
                                   .slots = {slots.begin(), slots.end()}});
  return follow_plan(life);
}

Status Runner::connect(Life& life) {
  const StartOrder& order = life.order;
  std::vector<PeerAddress> peers;
  for (const wire::MemberInfo& m : order.start.members())
    peers.push_back({m.member(), {m.data().host_id(), m.data().unix_name(), m.data().tcp()}});
  // A member that joins waits for members that may train on for long, until the plan is void.
  const bool joins_later = order.planned && !life.entered;
  for (;;) {
    Flight flight(parts_.flight, FlightOperation::kConnect, {order.generation, 0, 0});
    auto connected = parts_.context.connect(order.generation, life.rank, order.member, peers,
                                            options_.connect_deadline_ms);
    flight.end(connected.is_ok());
    if (connected.is_ok()) {
      life.collective = std::move(*connected);
      record(life);
      return parts_.devices == nullptr ? Status::ok() : connect_devices(life);
    }
    if (!is_about_peers(connected.status().code())) return connected.status();
    if (!joins_later || !parts_.mailbox.pause(order.generation, kConnectPauseMs))
      return Status(Code::kAborted, connected.status().message());
  }
}

void Runner::record(Life& life) const {
  if (parts_.flight == nullptr) return;
  life.collective =
      std::make_unique<RecordedCollective>(std::move(life.collective), *parts_.flight);
}

std::function<bool()> Runner::closes(Generation generation) const {
  return [&gate = parts_.gate, generation] { return gate.is_closed(generation); };
}

// The work that the generation before left unfinished is on the device until this call: see D1.
Status Runner::connect_devices(Life& life) {
  const Generation generation = life.order.generation;
  DeviceGeneration next;
  next.generation = generation;
  std::vector<std::string_view> hosts;
  for (const wire::MemberInfo& m : life.order.start.members()) {
    next.members.push_back(m.member());
    hosts.push_back(m.data().host_id());
  }
  next.node_of_rank = number_nodes(hosts);
  if (next.members.size() > 1)
    parts_.logger.info("device_sums",
                       "gradients are summed " + describe_levels(next.node_of_rank) +
                           (next.node_of_rank.back() > 0 && !sums_in_levels(next.node_of_rank)
                                ? "; every partial goes between nodes"
                                : ""));
  next.control = life.collective.get();
  next.deadline_ms = options_.connect_deadline_ms;
  next.is_closed = closes(generation);
  Flight flight(parts_.flight, FlightOperation::kConnectGpus, {generation, 0, 0});
  auto connected = parts_.devices->connect(std::move(next));
  flight.end(connected.is_ok());
  if (!connected.is_ok()) {
    const Status& why = connected.status();
    return is_about_peers(why.code()) ? Status(Code::kAborted, why.message()) : why;
  }
  life.devices = std::move(*connected);
  return Status::ok();
}

// From here on the generation counts: this worker answers a prepare as one of its members, and
// reports a planned change, which the coordinator could not see.
Status Runner::enter(const StartOrder& order, const ResumePoint& at) {
  if (!parts_.gate.open(order.generation, at, plan_of(order.start)))
    return Status(Code::kAborted, "a newer generation was prepared before this one began");
  if (order.planned) parts_.port.switched(order.generation, at);
  return Status::ok();
}

// The coordinator has planned buckets for the host, since only the workers know who sums. All
// members cut the same layout in the same way.
Result<std::vector<uint64_t>> Runner::plan_buckets_of(const Life& life) const {
  const wire::CommSpec& comm = options_.job.comm();
  const auto& planned = life.order.start.buckets().bounds();
  if (comm.bucket_mb() != 0 || life.devices == nullptr)
    return std::vector<uint64_t>(planned.begin(), planned.end());
  return plan_buckets(parts_.engine.tensor_bounds(),
                      parts_.engine.gradient_buffer().layout().elements,
                      bucket_bytes(comm, /*nccl_sums=*/true));
}

Status Runner::begin_engine(Life& life) {
  const Generation generation = life.order.generation;
  GenerationView view;
  view.generation = generation;
  view.collective = life.collective.get();
  view.devices = life.devices.get();
  for (const wire::MemberInfo& m : life.order.start.members())
    view.slot_runs.push_back({m.slots().begin(), m.slots().end()});
  LOCKSTEP_ASSIGN_OR_RETURN(life.bucket_bounds, plan_buckets_of(life));
  view.bucket_bounds = life.bucket_bounds;
  view.total_steps = life.order.start.total_steps();
  view.ends = life.plan.possible_ends(view.total_steps);
  view.is_writer = life.is_writer;
  view.evaluated = track_.last;
  view.skips = skips_of(life.order.start);
  view.phases = parts_.phases;
  view.in_hand = parts_.in_hand;
  view.prefetch = parts_.prefetch;
  view.flight = parts_.flight;
  view.trace = trace_.log();
  view.note = [this](const std::string& what) { parts_.logger.info("engine", what); };
  view.is_closed = closes(generation);
  view.wants_switch = [this, generation] { return parts_.mailbox.wants_switch(generation); };
  StepGate gate;
  gate.try_enter = [this] { return parts_.gate.try_enter(); };
  gate.end_here = [this] { parts_.gate.end_here(); };
  gate.leave = [this] { parts_.gate.leave(); };
  return parts_.engine.begin_generation(view, std::move(gate));
}

}  // namespace lockstep
