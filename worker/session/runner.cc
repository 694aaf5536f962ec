#include "worker/session/runner.h"

#include <algorithm>
#include <utility>

#include "data/order/step_plan.h"

namespace lockstep {
namespace {

ResumePoint from_wire(const wire::ResumePoint& point) {
  return {point.step(), static_cast<Phase>(
                            std::min<uint32_t>(point.phase(), static_cast<uint32_t>(Phase::kEnd)))};
}

// A checkpoint of the end of a run that is now longer, or the other way round.
ResumePoint fit_to_plan(ResumePoint at, const RunPlan& plan) {
  if (at.step < plan.total_steps && at.phase > Phase::kEval) at.phase = Phase::kTrain;
  if (at.step >= plan.total_steps && at.phase == Phase::kTrain) at.phase = Phase::kCheckpoint;
  if (at.phase == Phase::kEval && !plan.has_eval) at.phase = plan.after_eval(at.step);
  return at;
}

}  // namespace

RunPlan make_run_plan(const wire::JobSpec& job, const wire::DataFacts& facts,
                      uint64_t total_steps) {
  RunPlan plan;
  plan.steps_per_epoch = data::steps_per_epoch(
      {facts.train_samples(), job.train().global_batch(), job.train().slots()});
  plan.total_steps = total_steps;
  plan.has_eval = !job.data().eval().path().empty();
  return plan;
}

Runner::Runner(Options options, Parts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      writer_(
          parts_.files, {options_.run_dir + "/checkpoints", options_.job.checkpoint().keep()},
          [this](Generation generation, wire::CheckpointReport report) {
            parts_.probe.checkpoint_written(report);
            parts_.port.report_checkpoint(generation, std::move(report));
          },
          parts_.logger) {}

void Runner::run() {
  parts_.probe.doing(RunnerProbe::Activity::kIdle);
  while (const auto order = parts_.mailbox.next()) {
    ended_with(*order, run_generation(*order));
    parts_.probe.doing(RunnerProbe::Activity::kIdle);
  }
}

void Runner::ended_with(const StartOrder& order, const Status& status) {
  if (status.is_ok()) return;
  // Once the generation is closed, every error is a consequence of that.
  const bool closed = parts_.gate.is_closed(order.generation);
  if (closed || status.code() == Code::kAborted) {
    parts_.logger.info("generation_over", "generation over: " + status.message(),
                       {{"generation", order.generation}});
    if (!closed) parts_.port.suspect(order.generation, 0, status.message());
    return;
  }
  parts_.logger.error("training_failed", status.message(), {{"generation", order.generation}});
  parts_.port.leave(order.generation, wire::Leave::FAILED, status, parts_.gate.applied());
  parts_.on_failure(status);
}

Status Runner::run_generation(const StartOrder& order) {
  parts_.probe.doing(RunnerProbe::Activity::kRecovery);
  LOCKSTEP_ASSIGN_OR_RETURN(Life life, make_life(order));
  Status status = live(life);
  // U4. Nothing may return or be freed between these.
  if (!status.is_ok()) parts_.context.close(order.generation);
  parts_.engine.end_generation();
  return status;
}

Status Runner::live(Life& life) {
  const StartOrder& order = life.order;
  if (life.is_writer) writer_.clean_up();
  const ResumePoint at = fit_to_plan(from_wire(order.start.resume()), life.plan);
  LOCKSTEP_RETURN_IF_ERROR(connect(life));
  LOCKSTEP_RETURN_IF_ERROR(install_state(life, at));
  if (!parts_.gate.open(order.generation, at, life.plan))
    return Status(Code::kAborted, "a newer generation was prepared before this one began");
  LOCKSTEP_RETURN_IF_ERROR(begin_engine(life));
  parts_.probe.generation_started(order.generation, order.member, life.rank,
                                  life.collective->world_size());
  return follow_plan(life, at);
}

Result<Runner::Life> Runner::make_life(const StartOrder& order) const {
  Life life(order);
  const auto& members = order.start.members();
  const auto self = std::find_if(members.begin(), members.end(), [&](const wire::MemberInfo& m) {
    return m.member() == order.member;
  });
  if (self == members.end())
    return Status(Code::kInternal, "generation " + std::to_string(order.generation) +
                                       " was started without this worker, member " +
                                       std::to_string(order.member));
  life.rank = static_cast<uint32_t>(self - members.begin());
  life.is_writer = order.start.writer() == order.member;
  life.first_step = order.start.resume().step();
  life.plan = make_run_plan(options_.job, options_.facts, order.start.total_steps());
  return life;
}

Status Runner::connect(Life& life) {
  std::vector<PeerAddress> peers;
  for (const wire::MemberInfo& m : life.order.start.members())
    peers.push_back({m.member(), {m.data().host_id(), m.data().unix_name(), m.data().tcp()}});
  LOCKSTEP_ASSIGN_OR_RETURN(
      life.collective, parts_.context.connect(life.order.generation, life.rank, life.order.member,
                                              peers, options_.connect_deadline_ms));
  return Status::ok();
}

Status Runner::install_state(const Life& life, const ResumePoint& at) {
  const wire::StateSource& source = life.order.start.source();
  if (!source.checkpoint_path().empty()) {
    parts_.gate.lost_state();
    LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo info,
                              load_checkpoint(source.checkpoint_path(), parts_.engine.state()));
    if (info.manifest.resume.step != at.step)
      return Status(Code::kInternal, "checkpoint " + info.name + " is not of step " +
                                         std::to_string(at.step) + ", which was to be resumed");
    parts_.engine.state_replaced(at.step);
    resumed_from_ = info.name;
    parts_.logger.info("checkpoint_loaded", "resumed from " + info.name, {{"step", at.step}});
    return Status::ok();
  }
  // Fresh weights are those the engine was made with; and a member of the generation before may
  // simply go on with what it has.
  if (parts_.engine.applied_steps() != at.step)
    return Status(Code::kInternal, "this worker's state is of step " +
                                       std::to_string(parts_.engine.applied_steps()) +
                                       ", the generation resumes at step " +
                                       std::to_string(at.step));
  return Status::ok();
}

Status Runner::begin_engine(Life& life) {
  GenerationView view;
  view.generation = life.order.generation;
  view.collective = life.collective.get();
  for (const wire::MemberInfo& m : life.order.start.members())
    view.slot_runs.push_back({m.slots().begin(), m.slots().end()});
  const auto& bounds = life.order.start.buckets().bounds();
  view.bucket_bounds.assign(bounds.begin(), bounds.end());
  view.total_steps = life.order.start.total_steps();
  view.phases = parts_.phases;
  Engine::ApplyGate gate;
  gate.try_enter = [this] { return parts_.gate.try_enter(); };
  gate.leave = [this] { parts_.gate.leave(); };
  return parts_.engine.begin_generation(view, std::move(gate));
}

}  // namespace lockstep
