// The phases of a run, one after another: steps, a planned change, evaluations, the end.
#include "comm/base/planted_bug.h"
#include "comm/collectives/cross_check.h"
#include "tests/sim/cluster/trainer.h"

namespace lockstep::sim {
namespace {

Status closed_meanwhile() {
  return Status(Code::kAborted, "the generation was closed while it was not training");
}

}  // namespace

Task<Status> Trainer::follow_plan(Life& life) {
  held_check_.reset();
  const bool is_past_edge = life.plan.is_past_edge(life.at);
  if (life.plan.may_be_kept(life.at.step))
    compare_weights(life, life.plan.has_edge(life.at.step) && !is_past_edge);
  if (life.at.phase != Phase::kEval && !is_past_edge) {
    Status status = co_await keep_if_best(life);
    if (!status.is_ok()) co_return status;
  }
  for (;;) {
    Outcome outcome;
    Status status;
    phase_ = life.at.phase;
    if (life.at.phase == Phase::kTrain) {
      status = co_await train_step(life, &outcome);
    } else if (life.at.phase == Phase::kEval) {
      status = co_await evaluate(life);
    } else if (life.at.phase == Phase::kEdge) {
      status = co_await cross_edge(life);
    } else if (life.at.phase == Phase::kCheckpoint) {
      status = co_await checkpoint(life, /*is_final=*/true);
      if (!status.is_ok()) co_return status;
      life.at.phase = Phase::kEnd;
      if (!parts_.gate.reached(life.at)) co_return closed_meanwhile();
    } else {
      world_.note_finished({parts_.process.name(), life.order.generation, life.at});
      parts_.port.leave(life.order.generation, wire::Leave::FINISHED, Status::ok(), life.at);
      co_return Status::ok();
    }
    if (!status.is_ok()) co_return status;
    if (outcome.stop) {
      status = co_await checkpoint(life, /*is_final=*/true);
      if (!status.is_ok()) co_return status;
      parts_.port.leave(life.order.generation, wire::Leave::STOPPED, Status::ok(), life.at);
      co_return Status::ok();
    }
    if (!outcome.change) continue;
    bool has_left = false;
    status = co_await switch_generation(life, &has_left);
    if (!status.is_ok() || has_left) co_return status;
  }
}

Task<Status> Trainer::compute(Life& life, Collective::Reduced* into) {
  const auto check = plan_check(life);
  take_damage(/*is_after_step=*/false);
  buckets_sent_ = 0;
  busy_ms_ = 0;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    LOCKSTEP_CO_RETURN_IF_ERROR(compute_slots(life));
    world_.moment(Moment::kBeforePublish, parts_.process.name());
    Segment::Partial partial = partial_of(life, bucket);
    if (LOCKSTEP_BUG(kPartialReusedInRedo) && last_try_.count(bucket) != 0)
      partial = last_try_[bucket];
    last_try_[bucket] = partial;
    Status status = co_await life.collective->publish(bucket, std::move(partial));
    if (!status.is_ok()) co_return status;
    ++buckets_sent_;
  }
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    std::optional<uint32_t> checked;
    if (check && check->bucket == bucket &&
        takes_part(life.rank, check->sum_owner, life.collective->world_size()))
      checked = check->sum_owner;
    Status status = co_await life.collective->reduce(bucket, into, checked);
    if (!status.is_ok()) co_return status;
  }
  last_try_.clear();
  co_return Status::ok();
}

Task<Status> Trainer::apply(Life& life, const Collective::Reduced& reduced, bool* ends) {
  if (!parts_.gate.try_enter()) co_return Status(Code::kAborted, "the gate is closed");
  world_.moment(Moment::kApplying, parts_.process.name());
  co_await waiter_.sleep(0, 2);
  const Step step = state_.step;
  state_ = next_state(state_, reduced.sums);
  world_.note_applied(
      {parts_.process.name(), life.order.member, life.order.generation, step, state_});
  *ends = (reduced.votes.finish || world_.is_ended_in_apply(state_.step)) &&
          first_turn(world_.shape, state_.step) == state_.step &&
          state_.step < life.plan.total_steps;
  if (*ends) parts_.gate.end_here();
  parts_.gate.leave();
  parts_.in_hand.slots.clear();
  if (*ends) life.plan.end_at(state_.step);
  life.at = {state_.step, life.plan.after_step(state_.step)};
  co_return Status::ok();
}

// As Runner::end_here().
Task<Status> Trainer::end_here(Life& life) {
  world_.note_ended({parts_.process.name(), life.order.generation, life.at});
  parts_.port.report_end(life.order.generation, life.at.step);
  co_return co_await life.collective->barrier();
}

wire::StepRecord Trainer::record_of(const Life& life, const Collective::Reduced& reduced) const {
  wire::StepRecord record;
  const Step step = state_.step - 1;
  const StepPlan plan = plan_step(world_.shape, step);
  record.set_step(step);
  record.set_epoch(plan.epoch);
  record.set_samples(life.skips.counted_samples(plan, step, world_.shape.slots));
  if (LOCKSTEP_BUG(kSkippedSlotCounted)) record.set_samples(plan.samples);
  if (record.samples() > 0) record.set_loss(world_.loss_of(step, life.skips));
  record.set_lr(0.1);
  record.set_common_hash(hash_of(reduced.sums));
  for (const auto& [slot, digest] : reduced.digests) {
    wire::SlotDigest* out = record.add_slots();
    out->set_slot(slot);
    out->set_digest(digest);
    out->set_samples(static_cast<uint32_t>(slot_positions(plan, slot, world_.shape.slots).size()));
  }
  record.mutable_times()->set_forward_us(static_cast<uint32_t>(busy_ms_) * 1'000);
  return record;
}

Task<Status> Trainer::train_step(Life& life, Outcome* outcome) {
  const StepPlan plan = plan_step(world_.shape, state_.step);
  if (life.skips.counted_samples(plan, state_.step, world_.shape.slots) == 0)
    co_return co_await skip_step(life);
  const auto check = plan_check(life);
  Collective::Reduced reduced;
  Status status = co_await compute(life, &reduced);
  if (!status.is_ok()) co_return status;
  std::optional<wire::CheckReport> report;
  if (check) report = check_report(life, *check, reduced);
  world_.moment(Moment::kBeforeApply, parts_.process.name());
  status = co_await apply(life, reduced, &outcome->ends);
  if (!status.is_ok()) co_return status;
  status = parts_.port.add_record(life.order.generation, record_of(life, reduced));
  if (status.is_ok() && outcome->ends) status = co_await end_here(life);
  if (!status.is_ok()) co_return status;
  take_damage(/*is_after_step=*/true);
  const bool is_end = state_.step >= life.plan.total_steps;
  outcome->stop = reduced.votes.stop && !is_end;
  const bool may_change = !outcome->stop && !outcome->ends;
  outcome->change = reduced.votes.change && may_change;
  if (LOCKSTEP_BUG(kSwitchBeforeAllHaveHeard))
    outcome->change = may_change && has_plan_for(life.order.generation);
  const bool before_edge = life.plan.has_edge(state_.step) && !outcome->stop && !outcome->change;
  if (report) {
    report->set_applied(state_.step);
    report->set_weights_hash(state_.hash);
    say_check(life, std::move(*report), before_edge);
  } else if (outcome->stop || life.plan.may_be_kept(state_.step)) {
    compare_weights(life, before_edge);
  }
  world_.moment(Moment::kApplied, parts_.process.name());
  co_return co_await checkpoint_if_due(life, outcome->stop || is_end);
}

Task<Status> Trainer::checkpoint_if_due(Life& life, bool is_last) {
  if (life.is_writer && life.plan.is_checkpoint_due(state_.step) && !is_last)
    co_return co_await checkpoint(life, /*is_final=*/false);
  co_return Status::ok();
}

// Leaves the state as it is: no collective, and no vote.
Task<Status> Trainer::skip_step(Life& life) {
  if (!parts_.gate.try_enter()) co_return Status(Code::kAborted, "the gate is closed");
  const Step step = state_.step++;
  world_.note_applied(
      {parts_.process.name(), life.order.member, life.order.generation, step, state_});
  parts_.gate.leave();
  life.at = {state_.step, life.plan.after_step(state_.step)};
  Status status = parts_.port.add_record(life.order.generation, record_of(life, {}));
  if (!status.is_ok()) co_return status;
  if (life.plan.may_be_kept(state_.step)) compare_weights(life, life.plan.has_edge(state_.step));
  world_.moment(Moment::kApplied, parts_.process.name());
  co_return co_await checkpoint_if_due(life, state_.step >= life.plan.total_steps);
}

// Called after the step in which all voted for the change. The order of calls is the same as in
// worker/runner/runner.h.
Task<Status> Trainer::switch_generation(Life& life, bool* has_left) {
  const Generation now = life.order.generation;
  const std::function<bool()> has_plan = [this, now] { return is_over(now) || has_plan_for(now); };
  co_await waiter_.until(has_plan);
  if (is_over(now)) co_return closed_meanwhile();
  StartOrder next = *std::exchange(plan_, std::nullopt);
  Status met;
  if (!LOCKSTEP_BUG(kNoBarrierAtSwitch)) met = co_await life.collective->barrier();
  world_.moment(Moment::kSwitching, parts_.process.name());
  if (!rank_of(next.start, next.member)) {
    // The others need only the news that this member came. They may be gone before it sees them.
    const std::function<bool()> is_idle = [this] { return !is_writing_; };
    co_await waiter_.until(is_idle);
    *has_left = true;
    parts_.port.leave(now, wire::Leave::DRAINED, Status::ok(), life.at);
    co_return Status::ok();
  }
  if (!met.is_ok()) co_return met;
  const ResumePoint since = life.at;
  Life after = make_life(std::move(next));
  after.at = since;
  after.first_step = since.step;
  life = std::move(after);
  if (!parts_.gate.open(life.order.generation, since, life.plan)) co_return closed_meanwhile();
  parts_.port.switched(life.order.generation, since);
  Status status = co_await connect(life, world_.options.connect_deadline_ms);
  if (!status.is_ok()) co_return status;
  const auto root = transfer_root(life.order.start);
  if (root) status = co_await transfer(life, *root);
  co_return status;
}

Task<Status> Trainer::evaluate(Life& life) {
  is_evaluating_ = true;
  Status status = co_await evaluate_with_all(life);
  is_evaluating_ = false;
  if (!status.is_ok()) co_return status;
  co_return co_await keep_if_best(life);
}

Task<Status> Trainer::evaluate_with_all(Life& life) {
  co_await waiter_.sleep(1, world_.options.compute_ms);
  world_.moment(Moment::kEvaluating, parts_.process.name());
  // All members gather the same scores. Here one member scores its own weights.
  Segment::StateCopy scored;
  scored.hash = state_.hash;
  Status status = co_await life.collective->broadcast(0, &scored);
  if (status.is_ok()) status = co_await life.collective->barrier();
  if (!status.is_ok()) co_return status;
  wire::EvalReport report = world_.evaluation_of({state_.step, scored.hash});
  if (!LOCKSTEP_BUG(kEvalReportedByOne)) {
    status = parts_.port.report_eval(life.order.generation, report);
    if (!status.is_ok()) co_return status;
  }
  track_.add(lockstep::mark_of(report), life.plan.by);
  world_.note_evaluated({parts_.process.name(), life.order.generation, track_});
  life.plan.end_with(track_, life.order.start.total_steps());
  life.at.phase = life.plan.after_eval(life.at.step);
  if (!parts_.gate.reached(life.at)) co_return closed_meanwhile();
  world_.moment(Moment::kEvaluated, parts_.process.name());
  // The worker's thread may lose the processor here.
  co_await waiter_.sleep(0, 2);
  if (LOCKSTEP_BUG(kEvalReportedByOne) && life.is_writer) {
    status = parts_.port.report_eval(life.order.generation, std::move(report));
    if (!status.is_ok()) co_return status;
  }
  co_return Status::ok();
}

// As Runner::cross_edge().
Task<Status> Trainer::cross_edge(Life& life) {
  const Generation generation = life.order.generation;
  if (life.plan.is_evaluated(life.at.step) && !LOCKSTEP_BUG(kEdgeBeforeItsEvaluation)) {
    const std::function<bool()> is_recorded = [this, generation] {
      return is_over(generation) || parts_.port.are_recorded();
    };
    co_await waiter_.until(is_recorded);
    if (is_over(generation)) co_return closed_meanwhile();
  }
  if (!parts_.gate.try_enter()) co_return closed_meanwhile();
  world_.moment(Moment::kEdge, parts_.process.name());
  co_await waiter_.sleep(0, world_.options.edge_ms);
  const bool is_evaluated = track_.last.step == state_.step;
  state_ = after_edge(state_, is_evaluated ? 1 + track_.last.correct : 0);
  world_.note_crossed({parts_.process.name(), generation, state_});
  const bool ends_here =
      world_.is_ended_at_edge(state_.step) && state_.step < life.plan.total_steps;
  if (ends_here) parts_.gate.end_at_edge();
  if (ends_here) life.plan.end_at(state_.step);
  life.at.phase = life.plan.after_edge(life.at.step);
  parts_.gate.leave_at(life.at);
  if (ends_here) {
    const Status met = co_await end_here(life);
    if (!met.is_ok()) co_return met;
    if (!held_check_) compare_weights(life, /*before_edge=*/false);
  }
  if (!held_check_) co_return Status::ok();
  wire::CheckReport report = *std::exchange(held_check_, std::nullopt);
  report.set_weights_hash(state_.hash);
  parts_.port.report_check(generation, std::move(report));
  co_return Status::ok();
}

// As Runner::keep_if_best().
Task<Status> Trainer::keep_if_best(Life& life) {
  const bool is_wanted = keeps_best(world_.job.checkpoint().best()) && life.at.step > 0;
  if (!is_wanted || track_.last.step != life.at.step ||
      !is_better(track_.last, track_.kept, life.plan.by))
    co_return Status::ok();
  track_.kept = track_.last;
  const bool is_written = submitted_ == std::pair(life.at.step, life.order.generation);
  const bool is_before_final = life.at.phase != Phase::kTrain && life.at.phase != Phase::kEdge;
  if (!life.is_writer || is_before_final || is_written) co_return Status::ok();
  co_return co_await checkpoint(life, /*is_final=*/false);
}

}  // namespace lockstep::sim
