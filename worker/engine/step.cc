// One training step, from its plan to its record.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/prng.h"
#include "worker/engine/engine_impl.h"
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

// What all ranks must agree on.
void sign(wire::StepRecord& record) {
  record.set_common_hash(stream_key(
      {record.step(), record.epoch(), record.samples(), record.skipped(), record.correct(),
       std::bit_cast<uint64_t>(record.loss()), std::bit_cast<uint64_t>(record.lr())}));
  for (const wire::Metric& metric : record.metrics())
    record.set_common_hash(
        stream_key({record.common_hash(), std::bit_cast<uint64_t>(metric.value())}));
}

// Where some labels do not count, as large a share of all as is right of those that do.
uint64_t correct_of_all(uint64_t correct, uint64_t counted, uint64_t all) {
  if (counted == all) return correct;
  return static_cast<uint64_t>(std::llround(
      static_cast<double>(correct) * static_cast<double>(all) / static_cast<double>(counted)));
}

Status closed_before(Step step) {
  return {Code::kAborted,
          "the generation was closed before step " + std::to_string(step) + " was applied"};
}

}  // namespace

Result<StepOutcome> EngineImpl::run_step() {
  const StepTrace trace(view_.trace, state_->applied_steps(), *phases_);
  StepWork work = plan_work();
  if (work.samples == 0) return pass_over(std::move(work));
  reducer_->begin_step(work.step, *work.merge);
  reducer_->trace(trace.log());
  if (work.check) reducer_->check_sum(work.check->bucket, work.check->sum_owner);
  for (const SlotWork& slot : work.schedule->work) {
    if (!slot.empty) LOCKSTEP_RETURN_IF_ERROR(compute_slot(slot, work));
    LOCKSTEP_RETURN_IF_ERROR(reducer_->slot_done(slot));
  }
  phases_->switch_to(WorkPhase::kCommunication);
  LOCKSTEP_RETURN_IF_ERROR(reducer_->open());  // for a rank without samples; else long open
  LOCKSTEP_RETURN_IF_ERROR(reducer_->finish([this] {
    return Votes{stop_requested_.load(std::memory_order_relaxed), view_.wants_switch()};
  }));
  if (work.check) LOCKSTEP_RETURN_IF_ERROR(check_others(work));
  phases_->switch_to(WorkPhase::kOptimizer);
  LOCKSTEP_RETURN_IF_ERROR(apply(work));
  phases_->switch_to(WorkPhase::kOther);
  note_tuning();
  return report(work);
}

// Forward and backward of one slot, on its own random stream and its own copy of the buffers; the
// gradient goes to the slot's region, by way of a graph's own place where a graph computes it.
Status EngineImpl::compute_slot(const SlotWork& slot, StepWork& work) {
  phases_->switch_to(WorkPhase::kDataWait);
  LOCKSTEP_ASSIGN_OR_RETURN(const data::Batch* batch, next_batch());
  LOCKSTEP_CHECK(batch != nullptr && batch->step == work.step && batch->slot == slot.slot,
                 "the loader is at another step than the engine");
  if (view_.in_hand != nullptr) view_.in_hand->computes(work.step, slot.slot);

  phases_->switch_to(WorkPhase::kForward);
  const SlotValues values = values_of(*batch, work);
  LOCKSTEP_RETURN_IF_ERROR(send_slot(*batch, values));
  LOCKSTEP_ASSIGN_OR_RETURN(SlotGraphs* const graphs, launch_graph(batch->samples));
  ModelOutput output;
  if (graphs == nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(output, forward_->train(values.dropout_key));
  }
  phases_->switch_to(WorkPhase::kCommunication);
  LOCKSTEP_RETURN_IF_ERROR(reducer_->open());  // after forward, when peers have long read

  phases_->switch_to(WorkPhase::kBackward);
  SlotMemory memory = memory_of(slot);
  const std::function<void(uint32_t)> none;
  const auto& on_ready = reducer_->is_last(slot) ? on_tensor_ready_ : none;
  if (graphs != nullptr) {
    memory.gradients = graphs->place();
    graphs->announce(on_ready);
  } else {
    LOCKSTEP_RETURN_IF_ERROR(backward_slot(output, memory.gradients, on_ready));
  }
  LOCKSTEP_RETURN_IF_ERROR(write_slot_results(*batch, values, memory));
  phases_->switch_to(WorkPhase::kOther);
  if (work.check && work.check->slot == slot.slot)
    LOCKSTEP_RETURN_IF_ERROR(note_gradient(slot.slot, memory.gradients, work));
  return send_next_ahead();
}

Result<const data::Batch*> EngineImpl::next_batch() {
  if (ahead_ != nullptr) return std::exchange(ahead_, nullptr);
  return loader_->next();
}

// While backward runs: after apply the device would wait for them. Peers wait for this rank, so it
// does not wait for its loader.
Status EngineImpl::send_next_ahead() {
  if (!device_->sends_ahead() || loader_->ready_batches() == 0) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(ahead_, loader_->next());
  if (ahead_ == nullptr) return Status::ok();
  return device_->send_ahead(ahead_->shape, ahead_->inputs(), ahead_->labels, ahead_->samples);
}

EngineImpl::SlotMemory EngineImpl::memory_of(const SlotWork& slot) {
  float* region = reducer_->region(slot);
  float* on_device = reducer_->region_on_device(slot);
  return {region, on_device != nullptr ? on_device : device_->gradients(region)};
}

Status EngineImpl::send_slot(const data::Batch& batch, const SlotValues& values) {
  LOCKSTEP_RETURN_IF_ERROR(check_targets(batch.shape, batch.labels, batch.samples));
  return device_->send(batch.shape, batch.inputs(), batch.labels, batch.samples, values);
}

Status EngineImpl::backward_slot(const ModelOutput& output, float* gradients,
                                 const std::function<void(uint32_t)>& on_ready) {
  at::Tensor gradient;
  const bool is_by_sample = output.losses.defined();
  LOCKSTEP_RETURN_IF_ERROR(
      is_by_sample ? device_->start_losses(output, &gradient)
                   : device_->start_loss(output.logits, !model_->keeps_logits(), &gradient));
  gradients_->backward(is_by_sample ? output.losses : output.logits, gradient, gradients, on_ready);
  return device_->take_statistics(gradients);
}

Status EngineImpl::write_slot_results(const data::Batch& batch, const SlotValues& values,
                                      const SlotMemory& memory) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SlotScore loss, device_->loss());
  float* control = memory.region + layout_.buffer.statistics;
  std::fill(control, control + layout_.control_elements(), 0.0f);
  const auto share = [&](double sum) {
    return static_cast<float>(sum / static_cast<double>(values.step_labels));
  };
  control[kControlLoss] = share(loss.sum);
  if (model_->layout().has_weights()) control[kControlWeight] = share(loss.weight);
  for (uint32_t i = 0; i < metrics().size(); ++i)
    control[kControlMetrics + i] = share(loss.metrics[i]);
  control[kControlCorrect] = static_cast<float>(loss.correct);
  put_digest(control, batch.slot, batch.digest);
  return Status::ok();
}

// From here on the step counts. The gate keeps a generation from closing half-way. A device that
// fails leaves it taken: nothing true can be said of the step, and the process ends.
Status EngineImpl::apply(StepWork& work) {
  if (!gate_.try_enter()) return closed_before(work.step);
  const uint32_t slots = work.merge->non_empty_slots;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool applied,
                            device_->apply(reducer_->step_sums(), slots, work.record.lr()));
  LOCKSTEP_RETURN_IF_ERROR(prune_if_due());
  work.record.set_skipped(!applied);
  progress_step_.store(state_->applied_steps(), std::memory_order_relaxed);
  gate_.leave();
  return Status::ok();
}

// After every step, whatever became of it: else a step that overflows or is passed over would leave
// the run with fewer zeros than the job says.
Status EngineImpl::prune_if_due() {
  if (!state_->is_to_prune()) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(device_->to_host());
  state_->prune();
  return device_->to_device();
}

EngineImpl::StepWork EngineImpl::plan_work() {
  StepWork work;
  work.before = phases_->snapshot();
  work.step = state_->applied_steps();
  work.plan = data::plan_step(shape_, work.step);
  work.samples = view_.skips.counted_samples(work.plan, work.step, shape_.slots);
  work.record.set_step(work.step);
  work.record.set_epoch(work.plan.epoch);
  work.record.set_samples(work.samples);
  work.record.set_lr(schedule_.lr(work.step, view_.total_steps));
  if (work.samples == 0) return work;
  work.labels = is_by_sample()
                    ? work.samples
                    : label_count_.of_step(work.plan, work.step, shape_.slots, view_.skips);
  work.merge = &merge_of(work);
  work.schedule = &work.merge->ranks[view_.collective->rank()];
  work.check = plan_check(work);
  return work;
}

const StepMerge& EngineImpl::merge_of(const StepWork& work) {
  const bool has_skips = view_.skips.touches(work.step);
  const auto [it, is_new] = has_skips ? merges_with_skips_.try_emplace(work.step)
                                      : merges_.try_emplace(work.plan.samples);
  if (is_new) {
    it->second = make_step_merge(view_.slot_runs, shape_.slots,
                                 view_.skips.active_slots(work.plan, work.step, shape_.slots));
  }
  return it->second;
}

// Every rank knows it from the start, so nobody has to be asked. Only the step number moves: a mean
// over nothing would not be a number, and moments would decay for no gradient.
Result<StepOutcome> EngineImpl::pass_over(StepWork work) {
  if (!gate_.try_enter()) return closed_before(work.step);
  go_to(work.step + 1);
  LOCKSTEP_RETURN_IF_ERROR(prune_if_due());
  gate_.leave();
  StepOutcome outcome;
  outcome.epoch_ended = work.plan.last_of_epoch;
  sign(work.record);
  *work.record.mutable_times() = phase_times(phases_->snapshot().since(work.before));
  outcome.record = std::move(work.record);
  return outcome;
}

double EngineImpl::mean_loss(const float* control) const {
  const double sum = double{control[kControlLoss]};
  if (!model_->layout().has_weights()) return sum;
  return weighted_mean(sum, double{control[kControlWeight]});
}

Result<StepOutcome> EngineImpl::report(StepWork& work) {
  const float* control = reducer_->sums() + layout_.buffer.statistics;
  wire::StepRecord& record = work.record;
  record.set_loss(mean_loss(control));
  // Weights that are none are no overflow: the samples are at fault, and the loss says so.
  if (model_->layout().has_weights() &&
      !(control[kControlWeight] >= 0 && std::isfinite(control[kControlWeight])))
    record.set_skipped(false);
  for (uint32_t i = 0; i < metrics().size(); ++i) {
    wire::Metric& metric = *record.add_metrics();
    metric.set_name(metrics()[i]);
    metric.set_value(control[kControlMetrics + i]);
  }
  record.set_no_accuracy(!knows_right());
  record.set_correct(correct_of_all(static_cast<uint64_t>(control[kControlCorrect]), work.labels,
                                    work.samples * train_.shape().labels()));
  for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
    const uint64_t samples = data::slot_positions(work.plan, slot, shape_.slots).size();
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
  *record.mutable_times() = phase_times(phases_->snapshot().since(work.before));
  outcome.record = std::move(record);
  if (work.check) {
    work.found.set_applied(state_->applied_steps());
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t hash, device_->state_hash());
    work.found.set_weights_hash(hash);
    outcome.check = std::move(work.found);
  }
  return outcome;
}

}  // namespace lockstep
