// The phases of a run, one after another: steps, evaluations, checkpoints, the end; and the change
// to the next generation between two steps.
#include <utility>

#include "comm/base/check.h"
#include "comm/run/evaluation/check_after.h"
#include "worker/runner/runner.h"

namespace lockstep {
namespace {

// In the tag of the barrier before a planned change; no bucket has this number.
constexpr uint32_t kSwitchBucket = ~uint32_t{0};
// The same at an end by the script.
constexpr uint32_t kEndBucket = kSwitchBucket - 1;

Status closed_meanwhile() {
  return Status(Code::kAborted, "the generation was closed while it was not training");
}

}  // namespace

Result<Runner::Next> Runner::follow_plan(Life& life) {
  const Generation generation = life.order.generation;
  ResumePoint at = *life.begin;
  held_check_.reset();
  const bool is_past_edge = life.plan.is_past_edge(at);
  // The generation before may have ended before all members had reported it.
  if (life.plan.may_be_kept(at.step))
    LOCKSTEP_RETURN_IF_ERROR(
        compare_weights(life, at, life.plan.has_edge(at.step) && !is_past_edge));
  // The member that was to keep it may have died before it did.
  if (at.phase != Phase::kEval && !is_past_edge) LOCKSTEP_RETURN_IF_ERROR(keep_if_best(life, at));
  for (;;) {
    Agreed agreed = Agreed::kNothing;
    switch (at.phase) {
      case Phase::kTrain: {
        LOCKSTEP_ASSIGN_OR_RETURN(agreed, train_step(life, at));
        break;
      }
      case Phase::kEval:
        LOCKSTEP_RETURN_IF_ERROR(evaluate(life, at));
        break;
      case Phase::kEdge:
        LOCKSTEP_RETURN_IF_ERROR(cross_edge(life, at));
        break;
      case Phase::kCheckpoint:
        LOCKSTEP_RETURN_IF_ERROR(final_checkpoint(life, at));
        at.phase = Phase::kEnd;
        if (!parts_.gate.reached(at)) return closed_meanwhile();
        break;
      case Phase::kEnd:
        parts_.on_finish();
        parts_.port.leave(generation, wire::Leave::FINISHED, Status::ok(), at);
        return Next();
    }
    if (agreed == Agreed::kStop) {
      LOCKSTEP_RETURN_IF_ERROR(final_checkpoint(life, at));
      parts_.port.leave(generation, wire::Leave::STOPPED, Status::ok(), at);
      return Next();
    }
    if (agreed == Agreed::kSwitch) return switch_over(life, at);
  }
}

Result<Runner::Agreed> Runner::train_step(Life& life, ResumePoint& at) {
  parts_.probe.doing(RunnerProbe::Activity::kStep);
  LOCKSTEP_ASSIGN_OR_RETURN(StepOutcome outcome, parts_.engine.step());
  LOCKSTEP_CHECK(outcome.record.step() == at.step, "the engine applies the step that is next");
  const bool ends_here = outcome.ends_here && at.step + 1 < life.plan.total_steps;
  if (ends_here) life.plan.end_at(at.step + 1);
  at = {at.step + 1, life.plan.after_step(at.step + 1)};
  trace_.step_applied(at.step, life.rank);
  proof_.add(outcome.record, options_.job.train().slots());
  parts_.probe.step_applied(outcome.record, life.bucket_bounds);
  LOCKSTEP_RETURN_IF_ERROR(
      parts_.port.add_record(life.order.generation, std::move(outcome.record)));
  if (ends_here) LOCKSTEP_RETURN_IF_ERROR(end_here(life, at));
  // At the last step the run ends by itself, and better than by a stop: with an evaluation.
  const bool stop = outcome.all_want_stop && at.step < life.plan.total_steps;
  const bool before_edge = life.plan.has_edge(at.step) && !stop && !outcome.all_want_switch;
  if (outcome.check) {
    compared_ = {at.step, outcome.check->weights_hash()};
    report_check(life, std::move(*outcome.check), before_edge);
  } else if (stop || life.plan.may_be_kept(at.step) ||
             (life.collective->world_size() > 1 &&
              check_after(at.step, options_.job,
                          life.plan.possible_ends(life.order.start.total_steps())))) {
    LOCKSTEP_RETURN_IF_ERROR(compare_weights(life, at, before_edge));
  }

  // The final one has the same name: one report of it must not be taken for the other.
  const bool is_last = stop || at.step >= life.plan.total_steps;
  if (life.is_writer && life.plan.is_checkpoint_due(at.step) && !is_last)
    LOCKSTEP_RETURN_IF_ERROR(submit_checkpoint(life, at, /*final=*/false));
  if (stop) return Agreed::kStop;
  return outcome.all_want_switch && !ends_here ? Agreed::kSwitch : Agreed::kNothing;
}

// U10. In a body the slots of all ranks vote, so the others come, too. While a step is applied the
// script does the same in every worker, or the members are at odds: one that ends there stays where
// it is, and the next start, which knows of the end, takes the others there.
Status Runner::end_here(Life& life, const ResumePoint& at) {
  const Generation generation = life.order.generation;
  parts_.port.report_end(generation, at.step);
  const Status met = life.collective->barrier({generation, at.step, Phase::kEnd, kEndBucket, 0});
  if (met.is_ok() || met.code() == Code::kAborted) return met;
  return Status(Code::kAborted, "the script ends the run after step " + std::to_string(at.step) +
                                    " here, and not in all workers: " + met.message() +
                                    "; call run.finish() by what all workers know");
}

// U9
Status Runner::compare_weights(const Life& life, const ResumePoint& at, bool before_edge) {
  if (options_.job.train().check_every() == 0) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t hash, parts_.engine.state_hash());
  compared_ = {at.step, hash};
  if (life.collective->world_size() == 1) return Status::ok();
  wire::CheckReport report;
  report.set_applied(at.step);
  report.set_weights_hash(hash);
  report_check(life, std::move(report), before_edge);
  return Status::ok();
}

// E4
void Runner::report_check(const Life& life, wire::CheckReport report, bool before_edge) {
  if (before_edge)
    held_check_ = std::move(report);
  else
    parts_.port.report_check(life.order.generation, std::move(report));
}

Status Runner::cross_edge(Life& life, ResumePoint& at) {
  parts_.probe.doing(RunnerProbe::Activity::kStep);
  const auto are_recorded = [this] { return parts_.port.are_recorded(); };
  if (life.plan.is_evaluated(at.step) &&  // E1
      !parts_.mailbox.wait_recorded(life.order.generation, are_recorded))
    return closed_meanwhile();
  if (!parts_.gate.try_enter()) return closed_meanwhile();
  const bool is_last = at.step >= life.plan.total_steps;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool asks, parts_.engine.cross_edge(is_last));  // else U8
  const bool ends_here = asks && !is_last;
  if (ends_here) parts_.gate.end_at_edge();
  if (ends_here) life.plan.end_at(at.step);
  at.phase = life.plan.after_edge(at.step);
  parts_.gate.leave_at(at);
  if (ends_here) LOCKSTEP_RETURN_IF_ERROR(end_here(life, at));
  if (ends_here && !held_check_) return compare_weights(life, at, /*before_edge=*/false);
  const bool is_kept = life.plan.may_be_kept(at.step);
  if ((!held_check_ && !is_kept) || options_.job.train().check_every() == 0) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t hash, parts_.engine.state_hash());
  compared_ = {at.step, hash};
  if (!held_check_) return Status::ok();
  wire::CheckReport report = *std::exchange(held_check_, std::nullopt);
  report.set_weights_hash(hash);
  parts_.port.report_check(life.order.generation, std::move(report));
  return Status::ok();
}

// All members have agreed, including those without slots, which could not vote. Such a member may
// have to wait for the order that the others have.
Result<Runner::Next> Runner::switch_over(Life& life, const ResumePoint& at) {
  const Generation generation = life.order.generation;
  parts_.probe.doing(RunnerProbe::Activity::kRecovery);
  auto plan = parts_.mailbox.wait_for_plan(generation);
  if (!plan) return closed_meanwhile();
  const Status met =
      life.collective->barrier({generation, at.step, Phase::kTrain, kSwitchBucket, 0});
  if (!rank_of(plan->start, plan->member)) {
    // The others only need this member to reach the barrier, and may be gone before it sees them
    // there, so `met` does not matter. It reports its last checkpoint before it leaves.
    writer_.settle();
    parts_.port.leave(generation, wire::Leave::DRAINED, Status::ok(), at);
    return Next();
  }
  LOCKSTEP_RETURN_IF_ERROR(met);
  LOCKSTEP_RETURN_IF_ERROR(enter(*plan, at));
  return Next(Entry{std::move(*plan), at});
}

Status Runner::evaluate(Life& life, ResumePoint& at) {
  parts_.probe.doing(RunnerProbe::Activity::kEval);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::EvalReport report, parts_.engine.evaluate());
  parts_.probe.evaluated(report);
  const EvalMark mark = lockstep::mark_of(report);
  // U7. Before the gate: once this member says that the evaluation is over, it has reported it.
  LOCKSTEP_RETURN_IF_ERROR(parts_.port.report_eval(life.order.generation, std::move(report)));
  track_.add(mark, life.plan.by);
  life.plan.end_with(track_, life.order.start.total_steps());
  at.phase = life.plan.after_eval(at.step);
  if (!parts_.gate.reached(at)) return closed_meanwhile();
  return keep_if_best(life, at);
}

// checkpoint.best. At the end of the run the final checkpoint is the same, unless an edge is before
// it: the best one has the weights that were evaluated.
Status Runner::keep_if_best(Life& life, const ResumePoint& at) {
  const bool is_wanted = life.plan.keeps_best && at.step > 0;
  if (!is_wanted || track_.last.step != at.step ||
      !is_better(track_.last, track_.kept, life.plan.by))
    return Status::ok();
  track_.kept = track_.last;
  const bool is_written = submitted_ == std::pair(at.step, life.order.generation);
  const bool is_before_final = at.phase != Phase::kTrain && at.phase != Phase::kEdge;
  if (!life.is_writer || is_before_final || is_written) return Status::ok();
  return submit_checkpoint(life, at, /*final=*/false);
}

// U3. An error of this checkpoint is an error of the run: its end would be lost.
Status Runner::final_checkpoint(Life& life, const ResumePoint& at) {
  if (!life.is_writer) return Status::ok();
  parts_.probe.doing(RunnerProbe::Activity::kCheckpoint);
  LOCKSTEP_RETURN_IF_ERROR(submit_checkpoint(life, at, /*final=*/true));
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo info, writer_.wait());
  if (!parts_.mailbox.wait_acknowledged(info.name, life.order.generation))
    return closed_meanwhile();
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
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, parts_.engine.state());
  submitted_ = {at.step, life.order.generation};
  manifest.lineage.sequence = records.sequence;
  manifest.unacknowledged = std::move(records.batches);
  std::optional<uint64_t> hash;
  if (compared_.first == at.step) hash = compared_.second;
  writer_.submit(state, std::move(manifest), final, hash);
  return Status::ok();
}

Manifest Runner::make_manifest(const Life& life, const ResumePoint& at) const {
  Manifest manifest;
  manifest.resume = at;
  manifest.is_after_edge = life.plan.is_past_edge(at);
  manifest.generation = life.order.generation;
  manifest.member = life.order.member;
  manifest.seed = options_.job.seed();
  manifest.slots = options_.job.train().slots();
  manifest.global_batch = options_.job.train().global_batch();
  // The epoch of the last applied step, which an earlier generation may have applied.
  manifest.epoch = at.step > 0 ? (at.step - 1) / life.plan.evals.steps_per_epoch : 0;
  manifest.schedule = options_.job.schedule();
  manifest.dataset_fingerprint = options_.facts.train_fingerprint();
  manifest.numerics_fingerprint = options_.fingerprint;
  manifest.lineage = {life.order.start.lineage_id(), 0, life.order.run_id, resumed_from_,
                      life.begin->step};
  const auto& skipped = life.order.start.skipped();
  manifest.skipped.assign(skipped.begin(), skipped.end());
  manifest.proof = proof_;
  manifest.ends_at = life.plan.ended_at.value_or(0);
  manifest.legend = options_.facts.legend();
  return manifest;
}

}  // namespace lockstep
