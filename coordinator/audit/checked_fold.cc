#include "coordinator/audit/checked_fold.h"

#include "comm/run/plan/fold_digest.h"

namespace lockstep::coordinator {

CheckedFold::CheckedFold(const FoldEntry& entry, const SkipSet& skips, OrderedPlan& plan)
    : fold_(entry), slots_(plan.shape().slots), digests_((entry.last - entry.first) * slots_) {
  FoldDigest digest;
  for (Step step = entry.first; step < entry.last; ++step) {
    const StepPlan step_plan = plan.step(step);
    for (uint32_t slot = 0; slot < slots_; ++slot) {
      const uint64_t samples = plan.positions(step_plan, slot).size();
      if (samples == 0 || skips.contains(step, slot)) continue;
      uint64_t& planned = digests_[(step - entry.first) * slots_ + slot];
      planned = plan.digest(step_plan, slot);
      digest.add(step, slot, planned, samples);
    }
  }
  is_right_ = digest.value() == entry.digest && digest.samples() == entry.samples;
}

}  // namespace lockstep::coordinator
