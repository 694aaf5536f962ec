// Slots of single steps that a policy leaves out: a sample in such a slot killed its readers, or
// made the loss NaN or infinite. A skipped slot behaves like one without samples. Lockstep reads
// and computes nothing, sums and means leave the slot out, and the step counts the other slots'
// samples.
//
// INVARIANTS
//  K1 Positions do not move: the plan of a step and of its other slots is as without skips.
//  K2 Nothing here depends on ranks or on the number of workers.
//
// Thread-safety: a value; const methods from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "comm/base/ids.h"
#include "comm/run/plan/step_plan.h"

namespace lockstep {

class SkipSet {
 public:
  // Slots [begin, end) of `step`. They may overlap slots added before.
  void add(Step step, uint32_t begin, uint32_t end);

  bool empty() const { return by_step_.empty(); }
  bool contains(Step step, uint32_t slot) const;
  bool touches(Step step) const { return by_step_.contains(step); }

  // By slot: true if it owns at least one sample of this step and is not skipped.
  std::vector<bool> active_slots(const StepPlan& plan, Step step, uint32_t slots) const;

  // How many samples the step counts: plan.samples without the samples of skipped slots. 0: nothing
  // is left, and the step applies nothing.
  uint64_t counted_samples(const StepPlan& plan, Step step, uint32_t slots) const;

 private:
  using Runs = std::map<uint32_t, uint32_t>;  // begin → end; disjoint and apart
  std::map<Step, Runs> by_step_;
};

}  // namespace lockstep
