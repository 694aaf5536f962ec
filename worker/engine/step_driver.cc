#include "worker/engine/step_driver.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "comm/base/prng.h"
#include "comm/collectives/cross_check.h"
#include "worker/engine/loss.h"
#include "worker/engine/step_trace.h"

namespace lockstep {
namespace {

uint32_t micros(int64_t ns) {
  return static_cast<uint32_t>(ns / 1000);
}

wire::PhaseTimes phase_times(const PhaseTotals& spent) {
  wire::PhaseTimes times;
  times.set_data_wait_us(micros(spent.of(WorkPhase::kDataWait)));
  times.set_forward_us(micros(spent.of(WorkPhase::kForward)));
  times.set_backward_us(micros(spent.of(WorkPhase::kBackward)));
  times.set_communication_us(micros(spent.of(WorkPhase::kCommunication)));
  times.set_optimizer_us(micros(spent.of(WorkPhase::kOptimizer)));
  times.set_other_us(micros(spent.sum()) - times.data_wait_us() - times.forward_us() -
                     times.backward_us() - times.communication_us() - times.optimizer_us());
  return times;
}

// Hashes the fields that all ranks must agree on.
void sign(wire::StepRecord& record) {
  record.set_common_hash(stream_key(
      {record.step(), record.epoch(), record.samples(), record.skipped(), record.correct(),
       std::bit_cast<uint64_t>(record.loss()), std::bit_cast<uint64_t>(record.lr())}));
  for (const wire::Metric& metric : record.metrics())
    record.set_common_hash(
        stream_key({record.common_hash(), std::bit_cast<uint64_t>(metric.value())}));
}

// Scales the correct count from counted labels to all labels.
uint64_t correct_of_all(uint64_t correct, uint64_t counted, uint64_t all) {
  if (counted == all) return correct;
  return static_cast<uint64_t>(std::llround(
      static_cast<double>(correct) * static_cast<double>(all) / static_cast<double>(counted)));
}

Status closed_before(Step step) {
  return {Code::kAborted,
          "the generation was closed before step " + std::to_string(step) + " was applied"};
}

void note_gradient(uint32_t slot, uint64_t hash, wire::CheckReport& found) {
  found.set_has_gradient(true);
  found.set_slot(slot);
  found.set_gradient_hash(hash);
}

}  // namespace

StepDriver::StepDriver(const wire::JobSpec& job, const RunShape& shape, const FlatLayout& layout,
                       LossFacts loss, SlotComputer& computer)
    : job_(job), shape_(shape), layout_(layout), loss_(std::move(loss)), computer_(computer) {}

Status StepDriver::begin_generation(GenerationView view, StepGate gate, GradientBuffer& buffer,
                                    const GradientPath& path) {
  end_generation();
  if (view.slot_runs.size() != view.collective->world_size())
    return Status(Code::kInternal, "one slot run per rank is needed");
  if (view.bucket_bounds.size() < 2 || view.bucket_bounds.front() != 0 ||
      view.bucket_bounds.back() != layout_.buffer.elements)
    return Status(Code::kInternal, "the bucket plan is not for this model");
  bucket_.store(0, std::memory_order_relaxed);  // of the generation before
  view_ = std::move(view);
  view_.has_scored = [this] { bucket_.fetch_add(1, std::memory_order_relaxed); };
  gate_ = std::move(gate);
  voters_ =
      static_cast<uint32_t>(std::count_if(view_.slot_runs.begin(), view_.slot_runs.end(),
                                          [](const SlotRun& run) { return run.begin < run.end; }));
  reducer_ = std::make_unique<StepReducer>(layout_, buffer, *view_.collective, view_.generation,
                                           view_.bucket_bounds, bucket_, path);
  reducer_->note_in(view_.flight);
  return Status::ok();
}

void StepDriver::end_generation() {
  reducer_.reset();  // waits for its lane, which may still be in the Collective
  merges_.clear();
  merges_with_skips_.clear();
  gate_ = {};
  view_ = {};
}

Result<StepOutcome> StepDriver::step() {
  auto outcome = run_step();
  // Samples can be at fault only for this rank's own errors.
  if (outcome.status().code() == Code::kAborted) clear_in_hand();
  return outcome;
}

void StepDriver::clear_in_hand() {
  if (view_.in_hand != nullptr) view_.in_hand->has_computed();
}

Progress StepDriver::progress() const {
  const Step step = at_step_.load(std::memory_order_relaxed);
  const Phase phase = phase_.load(std::memory_order_acquire);  // before the bucket: see enters()
  const uint32_t enqueued = bucket_.load(std::memory_order_relaxed);
  return {step, phase, enqueued, enqueued};
}

Result<StepOutcome> StepDriver::run_step() {
  const StepTrace trace(view_.trace, computer_.applied_steps(), phases());
  StepWork work = plan_work();
  if (work.samples == 0) return pass_over(std::move(work));
  reducer_->begin_step(work.step, *work.merge);
  reducer_->trace(trace.log());
  if (work.check) reducer_->check_sum(work.check->bucket, work.check->sum_owner);
  for (const SlotWork& slot : work.schedule->work) {
    if (!slot.empty) LOCKSTEP_RETURN_IF_ERROR(compute_slot(slot, work));
    LOCKSTEP_RETURN_IF_ERROR(reducer_->slot_done(slot));
  }
  phases().switch_to(WorkPhase::kCommunication);
  LOCKSTEP_RETURN_IF_ERROR(reducer_->open());  // for a rank without samples; else long open
  LOCKSTEP_RETURN_IF_ERROR(reducer_->finish([this] {
    return Votes{stop_requested_.load(std::memory_order_relaxed), view_.wants_switch()};
  }));
  // From here on no failure is the samples' fault, except on a GPU, which may still compute them.
  if (reducer_->step_sums().on_device == nullptr) clear_in_hand();
  if (work.check) LOCKSTEP_RETURN_IF_ERROR(check_others(work));
  phases().switch_to(WorkPhase::kOptimizer);
  LOCKSTEP_RETURN_IF_ERROR(apply(work));
  phases().switch_to(WorkPhase::kOther);
  return report(work);
}

Status StepDriver::compute_slot(const SlotWork& slot, StepWork& work) {
  SlotPort port(*reducer_, slot);
  const SlotTask task{work.step, slot.slot, work.labels,
                      work.check && work.check->slot == slot.slot};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto hash, computer_.compute(task, port));
  if (hash) note_gradient(slot.slot, *hash, work.found);
  return Status::ok();
}

// Does a piece of another rank's work again, or of its own if this rank is alone. Runs after the
// sums are there and before anything is applied, while the step's weights are still in place.
Status StepDriver::check_others(StepWork& work) {
  phases().switch_to(WorkPhase::kOther);
  const CheckPlan& check = *work.check;
  // A NaN has the bits of the operand that came first, so correct members may differ.
  LOCKSTEP_ASSIGN_OR_RETURN(const bool are_finite, computer_.are_finite(reducer_->step_sums()));
  if (!are_finite) {
    work.found = {};
    return Status::ok();
  }
  if (const auto sum = reducer_->checked_sum()) {
    work.found.set_has_sum(true);
    work.found.set_sum_rank(check.sum_owner);
    work.found.set_sum_hash(*sum);
  }
  const Collective& collective = *view_.collective;
  const bool is_alone = collective.world_size() == 1;
  const bool is_mine = collective.rank() == check.slot_owner;
  const bool is_empty = slot_positions(work.plan, check.slot, shape_.slots).size() == 0 ||
                        view_.skips.contains(work.step, check.slot);
  if (is_empty || (is_mine && !is_alone) ||
      !takes_part(collective.rank(), check.slot_owner, collective.world_size())) {
    return Status::ok();
  }
  uint64_t hash = work.found.gradient_hash();
  if (!is_alone || !computer_.computes_twice()) {
    LOCKSTEP_ASSIGN_OR_RETURN(hash,
                              computer_.compute_again({work.step, check.slot, work.labels, true}));
  }
  if (is_alone) {
    work.found.set_has_again(true);
    work.found.set_again_hash(hash);
  } else {
    note_gradient(check.slot, hash, work.found);
  }
  return Status::ok();
}

// From here on the step counts. The gate keeps a generation from closing half-way. If the computer
// fails, the gate stays taken: the state is unknown, and the process ends.
Status StepDriver::apply(StepWork& work) {
  if (!gate_.try_enter()) return closed_before(work.step);
  const StepSums sums = reducer_->step_sums();
  const uint32_t slots = work.merge->non_empty_slots;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool applied, computer_.apply(sums, slots, work.record.lr()));
  clear_in_hand();
  work.record.set_skipped(!applied);
  if (computer_.ends_here()) gate_.end_here();
  at_step_.store(computer_.applied_steps(), std::memory_order_relaxed);
  gate_.leave();
  return Status::ok();
}

StepDriver::StepWork StepDriver::plan_work() {
  StepWork work;
  work.before = phases().snapshot();
  work.step = computer_.applied_steps();
  work.plan = plan_step(shape_, work.step);
  work.samples = view_.skips.counted_samples(work.plan, work.step, shape_.slots);
  work.record.set_step(work.step);
  work.record.set_epoch(work.plan.epoch);
  work.record.set_samples(work.samples);
  work.record.set_lr(computer_.lr(work.step));
  if (work.samples == 0) return work;
  work.labels = computer_.step_labels(work.plan, work.step, work.samples);
  work.merge = &merge_of(work);
  work.schedule = &work.merge->ranks[view_.collective->rank()];
  work.check = plan_check(job_, view_.ends, work.step, view_.slot_runs, reducer_->buckets());
  return work;
}

const StepMerge& StepDriver::merge_of(const StepWork& work) {
  const bool has_skips = view_.skips.touches(work.step);
  const auto [it, is_new] = has_skips ? merges_with_skips_.try_emplace(work.step)
                                      : merges_.try_emplace(work.plan.samples);
  if (is_new) {
    it->second = make_step_merge(view_.slot_runs, shape_.slots,
                                 view_.skips.active_slots(work.plan, work.step, shape_.slots));
  }
  return it->second;
}

// Every rank knows it from the start, so the ranks need no vote. Only the step number moves: a mean
// over nothing would not be a number, and moments would decay for no gradient.
Result<StepOutcome> StepDriver::pass_over(StepWork work) {
  if (!gate_.try_enter()) return closed_before(work.step);
  LOCKSTEP_RETURN_IF_ERROR(computer_.pass_over());
  at_step_.store(computer_.applied_steps(), std::memory_order_relaxed);
  gate_.leave();
  StepOutcome outcome;
  outcome.epoch_ended = work.plan.last_of_epoch;
  sign(work.record);
  *work.record.mutable_times() = phase_times(phases().snapshot().since(work.before));
  outcome.record = std::move(work.record);
  return outcome;
}

double StepDriver::mean_loss(const float* control) const {
  const double sum = double{control[kControlLoss]};
  if (!loss_.has_weights) return sum;
  return weighted_mean(sum, double{control[kControlWeight]});
}

Result<StepOutcome> StepDriver::report(StepWork& work) {
  const float* control = reducer_->sums() + layout_.buffer.statistics;
  wire::StepRecord& record = work.record;
  record.set_loss(mean_loss(control));
  // Invalid weights are no overflow: the samples are at fault, and the loss shows it.
  if (loss_.has_weights &&
      !(control[kControlWeight] >= 0 && std::isfinite(control[kControlWeight])))
    record.set_skipped(false);
  for (uint32_t i = 0; i < loss_.metrics.size(); ++i) {
    if (!loss_.is_given(i, work.plan.turn)) continue;
    wire::Metric& metric = *record.add_metrics();
    metric.set_name(loss_.metrics[i]);
    metric.set_value(control[kControlMetrics + i]);
  }
  record.set_no_accuracy(!loss_.knows_right);
  record.set_correct(correct_of_all(static_cast<uint64_t>(control[kControlCorrect]), work.labels,
                                    work.samples * loss_.labels_per_sample));
  for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
    const uint64_t samples = slot_positions(work.plan, slot, shape_.slots).size();
    if (samples == 0 || view_.skips.contains(work.step, slot)) continue;
    wire::SlotDigest& digest = *record.add_slots();
    digest.set_slot(slot);
    digest.set_digest(get_digest(control, slot));
    digest.set_samples(static_cast<uint32_t>(samples));
  }
  sign(record);
  StepOutcome outcome;
  outcome.epoch_ended = work.plan.last_of_epoch;
  outcome.all_want_stop = control[kControlStopVotes] == static_cast<float>(voters_);
  outcome.all_want_switch = control[kControlSwitchVotes] == static_cast<float>(voters_);
  outcome.ends_here = computer_.ends_here();
  *record.mutable_times() = phase_times(phases().snapshot().since(work.before));
  outcome.record = std::move(record);
  if (work.check) {
    work.found.set_applied(computer_.applied_steps());
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t hash, computer_.state_hash());
    work.found.set_weights_hash(hash);
    outcome.check = std::move(work.found);
  }
  return outcome;
}

}  // namespace lockstep
