// Computes a slot, and the update from a step's sums.
#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/prng.h"
#include "worker/engine/loss.h"
#include "worker/torch/engine/engine_impl.h"

namespace lockstep {

uint64_t EngineImpl::step_labels(const StepPlan& plan, Step step, uint64_t samples) {
  if (is_by_sample()) return samples;
  return label_count_.of_step(plan, step, shape_.slots, driver_.view().skips);
}

// Forward and backward of one slot, on its own random stream and its own copy of the buffers; the
// gradient goes to the slot's region, by way of a graph's own place where a graph computes it.
Result<std::optional<uint64_t>> EngineImpl::compute(const SlotTask& task, SlotPort& port) {
  phases_->switch_to(WorkPhase::kDataWait);
  LOCKSTEP_ASSIGN_OR_RETURN(const data::Batch* batch, next_batch());
  LOCKSTEP_CHECK(batch != nullptr && batch->step == task.step && batch->slot == task.slot,
                 "the loader is at another step than the engine");
  if (WorkInHand* const in_hand = driver_.view().in_hand; in_hand != nullptr)
    in_hand->computes(task.step, task.slot);

  phases_->switch_to(WorkPhase::kForward);
  const SlotValues values = values_of(*batch, task.step_labels);
  LOCKSTEP_RETURN_IF_ERROR(send_slot(*batch, values));
  LOCKSTEP_ASSIGN_OR_RETURN(SlotGraphs* const graphs, launch_graph(batch->samples));
  ModelOutput output;
  if (graphs == nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(output, forward_->train(values.dropout_key));
  }
  phases_->switch_to(WorkPhase::kCommunication);
  LOCKSTEP_RETURN_IF_ERROR(port.open());

  phases_->switch_to(WorkPhase::kBackward);
  SlotMemory memory = memory_of(port);
  if (graphs != nullptr) {
    memory.gradients = graphs->place();
    graphs->announce(port.on_ready());
  } else {
    LOCKSTEP_RETURN_IF_ERROR(backward_slot(output, memory.gradients, port.on_ready()));
  }
  LOCKSTEP_RETURN_IF_ERROR(write_slot_results(*batch, values, memory));
  phases_->switch_to(WorkPhase::kOther);
  std::optional<uint64_t> hash;
  if (task.wants_hash) {
    LOCKSTEP_ASSIGN_OR_RETURN(hash, device_->gradient_hash(memory.gradients));
  }
  LOCKSTEP_RETURN_IF_ERROR(send_next_ahead());
  return hash;
}

Result<uint64_t> EngineImpl::compute_again(const SlotTask& task) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto loader, make_loader(shape_, {task.slot, task.slot + 1}, task.step, task.step + 1,
                                     1, /*in_hand=*/nullptr));
  LOCKSTEP_ASSIGN_OR_RETURN(const data::Batch* batch, loader->next());
  std::vector<float> region(layout_.buffer.elements);
  float* const gradients = device_->gradients(region.data());
  const SlotValues values = values_of(*batch, task.step_labels);
  LOCKSTEP_RETURN_IF_ERROR(send_slot(*batch, values));
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelOutput output, forward_->train(values.dropout_key));
  LOCKSTEP_RETURN_IF_ERROR(backward_slot(output, gradients, nullptr));
  return device_->gradient_hash(gradients);
}

Result<bool> EngineImpl::apply(const StepSums& sums, uint32_t non_empty_slots, double lr) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool applied, device_->apply(sums, non_empty_slots, lr));
  LOCKSTEP_RETURN_IF_ERROR(prune_if_due());
  return applied;
}

Status EngineImpl::pass_over() {
  state_->set_applied_steps(state_->applied_steps() + 1);
  return prune_if_due();
}

SlotValues EngineImpl::values_of(const data::Batch& batch, uint64_t step_labels) const {
  return {.dropout_key = stream_key(
              {static_cast<uint64_t>(StreamKind::kDropout), job_.seed(), batch.step, batch.slot}),
          .step_labels = step_labels,
          .loss_scale = state_->loss_scale(),
          .label_share = batch.shares.label,
          .pixel_share = batch.shares.pixels,
          .label_smoothing = static_cast<float>(job_.train().label_smoothing())};
}

Result<SlotGraphs*> EngineImpl::launch_graph(uint64_t samples) {
  SlotGraphs* const graphs = device_->graphs();
  if (graphs == nullptr) return graphs;
  const auto body = [this](float* place, const SlotGraphs::OnReady& on_ready) -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const ModelOutput output, forward_->train(/*dropout_key=*/0));
    return backward_slot(output, place, on_ready);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      const bool is_launched,
      graphs->launch({samples, device_->most_documents()}, driver_.view().bucket_bounds, body));
  if (const std::string why = graphs->why(); !why.empty()) driver_.view().note(why);
  return is_launched ? graphs : nullptr;
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

EngineImpl::SlotMemory EngineImpl::memory_of(SlotPort& port) {
  float* region = port.region();
  float* on_device = port.region_on_device();
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
  if (driver_.loss().has_weights) control[kControlWeight] = share(loss.weight);
  for (uint32_t i = 0; i < metrics().size(); ++i)
    control[kControlMetrics + i] = share(loss.metrics[i]);
  control[kControlCorrect] = static_cast<float>(loss.correct);
  put_digest(control, batch.slot, batch.digest);
  return Status::ok();
}

// Called after every step, even one that overflows or is passed over: else the run would have fewer
// zeros than the job says.
Status EngineImpl::prune_if_due() {
  if (!state_->is_to_prune()) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(device_->to_host());
  state_->prune();
  return device_->to_device();
}

}  // namespace lockstep
