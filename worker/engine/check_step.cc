// A step in which this rank does a piece of another rank's work again, in memory of its own, after
// the sums are there and before anything is applied: the weights are still those of the step.
#include "comm/collectives/cross_check.h"
#include "worker/engine/engine_impl.h"

namespace lockstep {

std::optional<CheckPlan> EngineImpl::plan_check(const StepWork& work) const {
  return lockstep::plan_check(job_, work.step, view_.slot_runs, reducer_->buckets());
}

Status EngineImpl::check_others(StepWork& work) {
  phases_->switch_to(WorkPhase::kOther);
  const CheckPlan& check = *work.check;
  // The bits of a NaN are whichever operand's came first: members that are right may differ.
  LOCKSTEP_ASSIGN_OR_RETURN(const bool are_finite, device_->are_finite(reducer_->step_sums()));
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
  const bool is_mine = collective.rank() == check.slot_owner;
  const bool is_empty = data::slot_positions(work.plan, check.slot, shape_.slots).size() == 0 ||
                        view_.skips.contains(work.step, check.slot);
  if (is_mine || is_empty ||
      !takes_part(collective.rank(), check.slot_owner, collective.world_size())) {
    return Status::ok();
  }
  return compute_again(check.slot, work);
}

Status EngineImpl::compute_again(uint32_t slot, StepWork& work) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto loader,
                            make_loader(shape_, {slot, slot + 1}, work.step, work.step + 1, 1,
                                        /*in_hand=*/nullptr));
  LOCKSTEP_ASSIGN_OR_RETURN(const data::Batch* batch, loader->next());
  std::vector<float> region(layout_.buffer.elements);
  float* const gradients = device_->gradients(region.data());
  const SlotValues values = values_of(*batch, work);
  LOCKSTEP_RETURN_IF_ERROR(send_slot(*batch, values));
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelOutput output, forward_->train(values.dropout_key));
  LOCKSTEP_RETURN_IF_ERROR(backward_slot(output, gradients, nullptr));
  return note_gradient(slot, gradients, work);
}

Status EngineImpl::note_gradient(uint32_t slot, const float* gradients, StepWork& work) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t hash, device_->gradient_hash(gradients));
  work.found.set_has_gradient(true);
  work.found.set_slot(slot);
  work.found.set_gradient_hash(hash);
  return Status::ok();
}

}  // namespace lockstep
