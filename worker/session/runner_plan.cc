// The phases of a run, one after another: steps, evaluations, checkpoints, the end.
#include "comm/base/check.h"
#include "worker/session/runner.h"

namespace lockstep {
namespace {

Status closed_meanwhile() {
  return Status(Code::kAborted, "the generation was closed while it was not training");
}

}  // namespace

Status Runner::follow_plan(Life& life, ResumePoint at) {
  for (;;) {
    bool stop = false;
    switch (at.phase) {
      case Phase::kTrain:
        LOCKSTEP_RETURN_IF_ERROR(train_step(life, at, stop));
        break;
      case Phase::kEval:
        LOCKSTEP_RETURN_IF_ERROR(evaluate(life, at));
        break;
      case Phase::kCheckpoint:
        LOCKSTEP_RETURN_IF_ERROR(final_checkpoint(life, at));
        at.phase = Phase::kEnd;
        if (!parts_.gate.reached(at)) return closed_meanwhile();
        break;
      case Phase::kEnd:
        parts_.port.leave(life.order.generation, wire::Leave::FINISHED, Status::ok(), at);
        return Status::ok();
    }
    if (stop) {
      LOCKSTEP_RETURN_IF_ERROR(final_checkpoint(life, at));
      parts_.port.leave(life.order.generation, wire::Leave::STOPPED, Status::ok(), at);
      return Status::ok();
    }
  }
}

Status Runner::train_step(Life& life, ResumePoint& at, bool& stop) {
  parts_.probe.doing(RunnerProbe::Activity::kStep);
  LOCKSTEP_ASSIGN_OR_RETURN(StepOutcome outcome, parts_.engine.step());
  LOCKSTEP_CHECK(outcome.record.step() == at.step, "the engine applies the step that is next");
  at = {at.step + 1, life.plan.after_step(at.step + 1)};
  const auto& bounds = life.order.start.buckets().bounds();
  parts_.probe.step_applied(outcome.record, {bounds.data(), static_cast<size_t>(bounds.size())});
  LOCKSTEP_RETURN_IF_ERROR(
      parts_.port.add_record(life.order.generation, std::move(outcome.record)));

  // At the last step the run ends by itself, and better than by a stop: with an evaluation.
  stop = outcome.all_want_stop && at.step < life.plan.total_steps;
  const uint64_t every = options_.job.checkpoint().every_steps();
  const bool is_last = stop || at.phase == Phase::kCheckpoint;
  if (life.is_writer && every > 0 && at.step % every == 0 && !is_last)
    LOCKSTEP_RETURN_IF_ERROR(submit_checkpoint(life, at, /*final=*/false));
  return Status::ok();
}

Status Runner::evaluate(Life& life, ResumePoint& at) {
  parts_.probe.doing(RunnerProbe::Activity::kEval);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::EvalReport report, parts_.engine.evaluate());
  at.phase = life.plan.after_eval(at.step);
  if (!parts_.gate.reached(at)) return closed_meanwhile();
  parts_.probe.evaluated(report);
  if (life.is_writer) parts_.port.report_eval(life.order.generation, std::move(report));
  return Status::ok();
}

// U3. An error of this checkpoint is one of the run: its end would be lost.
Status Runner::final_checkpoint(Life& life, const ResumePoint& at) {
  if (!life.is_writer) return Status::ok();
  parts_.probe.doing(RunnerProbe::Activity::kCheckpoint);
  LOCKSTEP_RETURN_IF_ERROR(submit_checkpoint(life, at, /*final=*/true));
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo info, writer_.wait());
  if (!parts_.mailbox.wait_acknowledged(info.name)) return closed_meanwhile();
  return Status::ok();
}

Status Runner::submit_checkpoint(Life& life, const ResumePoint& at, bool final) {
  parts_.probe.doing(RunnerProbe::Activity::kCheckpoint);
  Manifest manifest = make_manifest(life, at);
  LOCKSTEP_ASSIGN_OR_RETURN(RecordQueue::Unacknowledged records, parts_.port.unacknowledged());
  if (!records.complete)
    parts_.logger.warn("records_left_out",
                       "the checkpoint does not carry all records that the coordinator lacks",
                       {{"step", at.step}});
  manifest.unacknowledged = std::move(records.batches);
  writer_.submit(parts_.engine.state(), std::move(manifest), final);
  return Status::ok();
}

Manifest Runner::make_manifest(const Life& life, const ResumePoint& at) const {
  Manifest manifest;
  manifest.resume = at;
  manifest.generation = life.order.generation;
  manifest.member = life.order.member;
  manifest.seed = options_.job.seed();
  manifest.slots = options_.job.train().slots();
  manifest.global_batch = options_.job.train().global_batch();
  // Of the last applied step, which an earlier generation may have applied.
  manifest.epoch = at.step > 0 ? (at.step - 1) / life.plan.steps_per_epoch : 0;
  manifest.schedule = options_.job.schedule();
  manifest.dataset_fingerprint = options_.facts.train_fingerprint();
  manifest.numerics_fingerprint = options_.fingerprint;
  manifest.lineage = {life.order.run_id, resumed_from_, life.first_step};
  return manifest;
}

}  // namespace lockstep
