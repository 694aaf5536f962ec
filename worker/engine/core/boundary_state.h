// All that a step changes: parameters, running statistics, counters, optimizer state, loss scale,
// step number.
//
// INVARIANTS
//  B1 It changes only in apply(), in whole, and through the views of tensors() and memory() between
//     two steps.
//  B2 Padding is zero, always.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "coordinator/checkpoint/state_tensor.h"
#include "worker/engine/core/flat_layout.h"
#include "worker/model/spec.h"
#include "worker/optim/grad_norm.h"
#include "worker/optim/loss_scale.h"
#include "worker/optim/optimizer.h"

namespace lockstep {

// How the flat buffers are updated: fixed for a run.
struct UpdatePlan {
  std::vector<OptimizerSegment> segments;
  std::vector<OptimizerGroup> groups;
  std::vector<NormRange> norm_ranges;
  double clip_norm = 0;  // 0: none
};

// Where the flat buffers lie, each with its padding.
struct BoundaryMemory {
  float* parameters = nullptr;
  float* statistics = nullptr;
  std::vector<OptimizerState> optimizer;  // as long as the parameters
};

class BoundaryState {
 public:
  // Initial weights from the job's seed. `model` and `layout` outlive the state.
  static Result<std::unique_ptr<BoundaryState>> create(const ModelLayout& model,
                                                       const FlatLayout& layout,
                                                       const wire::JobSpec& job);

  // Everything back to what create() made of this seed, in place.
  void initialize(uint64_t seed);

  BoundaryMemory memory();
  const UpdatePlan& plan() const { return plan_; }

  // The step's sums, laid out as the gradient buffer and multiplied by loss_scale(); statistics,
  // which are not, are divided by the number of slots that contributed. Afterwards applied_steps()
  // is one more. False: something overflowed, and nothing but that and the loss scale has changed.
  bool apply(const float* reduced, uint32_t non_empty_slots, double lr);

  // For a device that has done in memory of its own what apply() does: what the optimizer needs to
  // know of the step, before it, and what became of it, after.
  OptimizerStep next_update(double lr, float grad_scale) const;
  void applied_elsewhere(bool was_applied, const LossScaleState& loss_scale);
  const LossScaler& loss_scaler() const { return scaler_; }

  // What the gradients of the next step are to be multiplied by.
  float loss_scale() const { return scaler_.scale(); }
  // Nothing in the sums has overflowed or is no number.
  bool is_finite(const float* reduced) const {
    return all_finite(reduced, layout_.buffer.statistics);
  }

  Step applied_steps() const { return applied_steps_; }
  void set_applied_steps(Step steps) { applied_steps_ = steps; }

  std::vector<StateTensor> tensors();

 private:
  BoundaryState(const ModelLayout& model, const FlatLayout& layout,
                std::unique_ptr<Optimizer> optimizer, const wire::JobSpec& job);

  float* parameter(uint32_t index) { return params_.data() + layout_.parameters[index].begin; }
  float* statistics(uint32_t index) {
    return statistics_.data() + (layout_.statistics[index].begin - layout_.buffer.gradients);
  }
  // What the step's gradients are multiplied by: 1 / `loss_scale`, less when they are too long.
  float grad_scale(const float* reduced, float loss_scale) const;
  void count_step();  // one that was not skipped

  struct alignas(64) CacheLine {
    float values[16];
  };
  // Floats from 0 to n, zeroed, aligned to cache lines.
  class FlatFloats {
   public:
    explicit FlatFloats(uint64_t elements) : lines_(elements / 16) {}
    uint64_t size() const { return lines_.size() * 16; }
    float* data() { return reinterpret_cast<float*>(lines_.data()); }
    const float* data() const { return reinterpret_cast<const float*>(lines_.data()); }

   private:
    std::vector<CacheLine> lines_;
  };

  const ModelLayout& model_;
  const FlatLayout& layout_;
  std::unique_ptr<Optimizer> optimizer_;
  const UpdatePlan plan_;
  LossScaler scaler_;
  FlatFloats params_;
  FlatFloats statistics_;
  std::vector<int64_t> counters_;
  Step applied_steps_ = 0;
};

}  // namespace lockstep
