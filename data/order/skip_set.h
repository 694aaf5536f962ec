// Slots of single steps that are left out by policy: a sample in them killed its readers, or made
// the loss something that is no number. A skipped slot behaves as one without samples: nothing is
// read or computed, sums and means leave it out, and the step counts the samples of the others.
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
#include "data/order/step_plan.h"

namespace lockstep::data {

class SkipSet {
 public:
  // Slots [begin, end) of `step`. May overlap what was added before.
  void add(Step step, uint32_t begin, uint32_t end);

  bool empty() const { return by_step_.empty(); }
  bool contains(Step step, uint32_t slot) const;
  bool touches(Step step) const { return by_step_.contains(step); }

  // By slot: owns at least one sample of this step and is not skipped.
  std::vector<bool> active_slots(const StepPlan& plan, Step step, uint32_t slots) const;

  // How many samples the step counts: plan.samples without those of skipped slots. 0: nothing is
  // left, and the step applies nothing.
  uint64_t counted_samples(const StepPlan& plan, Step step, uint32_t slots) const;

 private:
  using Runs = std::map<uint32_t, uint32_t>;  // begin → end; disjoint and apart
  std::map<Step, Runs> by_step_;
};

}  // namespace lockstep::data
