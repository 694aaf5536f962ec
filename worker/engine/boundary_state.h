// The state that a step changes: parameters, running statistics, counters, optimizer state, the
// running average of the parameters, loss scale and step number.
//
// INVARIANTS
//  B1 The state changes only in apply(), as a whole, and between two steps in prune() and through
//     the views of tensors() and memory().
//  B2 Padding is always zero.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "comm/run/job/job.pb.h"
#include "worker/engine/flat_layout.h"
#include "worker/engine/parameter_groups.h"
#include "worker/model/spec.h"
#include "worker/optim/grad_norm.h"
#include "worker/optim/loss_scale.h"
#include "worker/optim/muon.h"
#include "worker/optim/optimizer.h"
#include "worker/optim/prune.h"

namespace lockstep {

// How an update changes the flat buffers. Fixed for a run.
struct UpdatePlan {
  std::vector<OptimizerSegment> segments;  // without the matrices
  std::vector<MatrixSegment> matrices;     // of Muon; else none
  std::vector<OptimizerGroup> groups;
  std::vector<NormRange> norm_ranges;
  double clip_norm = 0;  // 0: none
  // Weight decay would change a parameter that is left out because it gets no gradient.
  bool spares_decay = false;
  bool has_weights = false;  // the sums are to be divided by the samples' weight (kControlWeight)
};

// For optimizer.name muon.
struct MuonParts {
  std::vector<bool> is_matrix = {};  // by parameter: updated as a matrix; empty: none is
  MatrixUpdate update = {};          // on the host
};

// The flat buffers, each with its padding.
struct BoundaryMemory {
  float* parameters = nullptr;  // FlatLayout::parameter_elements
  float* statistics = nullptr;
  // As long as the gradients: for trained parameters only. With Muon the second is all zeros at
  // matrices.
  std::vector<OptimizerState> optimizer;
  float* average = nullptr;  // as long as the gradients; null without train.ema
};

class BoundaryState {
 public:
  // Draws the initial weights from the job's seed. `model` and `layout` outlive the state. `layout`
  // has the frozen parameters of resolve_groups(), whose errors are passed on.
  static Result<std::unique_ptr<BoundaryState>> create(const ModelLayout& model,
                                                       const FlatLayout& layout,
                                                       const wire::JobSpec& job,
                                                       MuonParts muon = {});

  // Resets the whole state, in place, to what create() makes from this seed.
  void initialize(uint64_t seed);
  // Sets the running average to the present parameters, where a run begins.
  void begin_average();

  BoundaryMemory memory();
  const UpdatePlan& plan() const { return plan_; }

  // Applies the step's sums. `reduced` has the layout of the gradient buffer. Its gradients are
  // multiplied by loss_scale(). Its statistics are not: apply() divides them by `non_empty_slots`,
  // the number of slots that contributed. applied_steps() then grows by one.
  // Returns false if a value overflowed, or if no sample had any weight. Then only applied_steps()
  // and the loss scale have changed.
  bool apply(const float* reduced, uint32_t non_empty_slots, double lr);

  // Whether the job makes weights zero at the present step (train.prune); prune() does. The device
  // needs the state before and after.
  bool is_to_prune() const { return prunes_after(prune_, applied_steps_); }
  void prune();

  // For a device that applies a step in its own memory. next_update(), before the step, gives what
  // the optimizer needs to know. applied_elsewhere(), after the step, takes the outcome.
  OptimizerStep next_update(double lr, float grad_scale) const;
  void applied_elsewhere(bool was_applied, const LossScaleState& loss_scale);
  const LossScaler& loss_scaler() const { return scaler_; }
  float average_rate() const { return average_rate_; }

  // The factor for the gradients of the next step.
  float loss_scale() const { return scaler_.scale(); }
  // True if the sums hold no infinity and no NaN.
  bool is_finite(const float* reduced) const {
    return all_finite(reduced, layout_.buffer.statistics);
  }

  // By index of ModelLayout::step_counters.
  std::span<const int64_t> counters() const { return counters_; }
  Step applied_steps() const { return applied_steps_; }
  void set_applied_steps(Step steps) { applied_steps_ = steps; }

  std::vector<StateTensor> tensors();

 private:
  BoundaryState(const ModelLayout& model, const FlatLayout& layout,
                std::unique_ptr<Optimizer> optimizer, const ParameterGroups& groups,
                const wire::JobSpec& job, MuonParts muon);

  float* parameter(uint32_t index) { return params_.data() + layout_.parameters[index].begin; }
  float* statistics(uint32_t index) {
    return statistics_.data() + (layout_.statistics[index].begin - layout_.buffer.gradients);
  }
  void add_optimizer_state(std::vector<StateTensor>& out);
  // The factor for the step's gradients: 1 / `loss_scale`, or less if clipping shortens them.
  float grad_scale(const float* reduced, float loss_scale) const;
  void count_step();  // for a step that was not skipped

  struct alignas(64) CacheLine {
    float values[16];
  };
  // `elements` floats, zeroed, aligned to cache lines.
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
  const MuonParts muon_;
  const UpdatePlan plan_;
  LossScaler scaler_;
  const wire::PruneSpec prune_;
  const float average_rate_;  // 1 - train.ema
  FlatFloats params_;
  FlatFloats average_;  // of the trained parameters; empty without train.ema
  FlatFloats statistics_;
  std::vector<int64_t> counters_;
  Step applied_steps_ = 0;
};

}  // namespace lockstep
