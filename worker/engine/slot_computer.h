// The part of a step that a StepDriver leaves open: computes a slot, and applies the sums.
//
// Thread-safety: the training thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/plan/step_plan.h"
#include "worker/engine/step_reducer.h"
#include "worker/engine/step_sums.h"

namespace lockstep {

// One slot that is not empty.
struct SlotTask {
  Step step = 0;
  uint32_t slot = 0;
  uint64_t step_labels = 0;  // as step_labels(): every loss of the step is divided by them
  bool wants_hash = false;   // of the gradient
};

// Where the results of one slot go.
class SlotPort {
 public:
  // Both outlive the port.
  SlotPort(StepReducer& reducer, const SlotWork& work) : reducer_(reducer), work_(work) {
    if (reducer.is_last(work))
      on_ready_ = [&reducer](uint32_t parameter) { reducer.tensor_ready(parameter); };
  }
  SlotPort(const SlotPort&) = delete;
  SlotPort& operator=(const SlotPort&) = delete;

  // Waits until the region may be written. Best after forward, when peers have long read it.
  Status open() { return reducer_.open(); }
  // Layout of the gradient buffer. REQUIRES: open() has returned ok.
  float* region() { return reducer_.region(work_); }
  // As StepReducer::sum_to_add_to(): where gradients may be added instead; null: nowhere.
  float* sum_to_add_to() { return reducer_.sum_to_add_to(work_); }
  // Where gradients and statistics go on the device; null: to region(). Control goes to region().
  float* region_on_device() { return reducer_.region_on_device(work_); }
  // To be called with a parameter's index as soon as its gradient is in the region; empty: nothing
  // waits for single gradients of this slot.
  const std::function<void(uint32_t)>& on_ready() const { return on_ready_; }

 private:
  StepReducer& reducer_;
  const SlotWork& work_;
  std::function<void(uint32_t)> on_ready_;
};

class SlotComputer {
 public:
  virtual ~SlotComputer() = default;

  virtual Step applied_steps() const = 0;

  // The learning rate of a step that is not applied yet; the same on every rank.
  virtual double lr(Step step) const = 0;

  // The labels of a step that count: the divisor of its losses, the same on every rank. The labels
  // of slots that the generation leaves out do not count.
  virtual uint64_t step_labels(const StepPlan& plan, Step step, uint64_t samples) = 0;

  // Computes a slot from the boundary state, which it does not change. Writes the whole region:
  // gradients, statistics, and the control section (flat_layout.h) with the slot's share of the
  // loss and its digest. Slots of a step come in ascending order. Gives the gradient's hash if the
  // task wants it. Marks the slot in the view's WorkInHand once it has its samples, and leaves the
  // view's phase clock at kOther.
  virtual Result<std::optional<uint64_t>> compute(const SlotTask& task, SlotPort& port) = 0;

  // Computes a slot, of this rank or not, in private memory, and gives the gradient's hash.
  // Comes after all slots of the step, and before apply().
  virtual Result<uint64_t> compute_again(const SlotTask& task) = 0;

  // True if the sums hold no infinity and no NaN.
  virtual Result<bool> are_finite(const StepSums& sums) = 0;

  // Applies the step's sums; applied_steps() grows by one. `non_empty_slots` contributed. False
  // if the sums overflowed or no sample had any weight: the update was left out. After an error the
  // state is unknown.
  virtual Result<bool> apply(const StepSums& sums, uint32_t non_empty_slots, double lr) = 0;

  // The step has no sums, since all its slots are left out: applied_steps() grows by one.
  virtual Status pass_over() = 0;

  // Whether the step that apply() has just made is the last of the run, since the script says so:
  // the same on every rank.
  virtual bool ends_here() const { return false; }

  // Whether compute() has computed a slot whose hash is wanted twice, and failed if it differed.
  virtual bool computes_twice() const { return false; }

  // hash_of() the boundary state (comm/run/checkpoint/state_hash.h).
  virtual Result<uint64_t> state_hash() = 0;
};

}  // namespace lockstep
