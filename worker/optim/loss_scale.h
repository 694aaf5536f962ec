// The loss scale of a run on the CPU: the rule of loss_scale_rule.h with the settings of the job.
//
// Thread-safety: one thread at a time.
#pragma once

#include "comm/run/job/job.pb.h"
#include "worker/optim/loss_scale_rule.h"

namespace lockstep {

// Name of the scale in the boundary state.
inline constexpr char kLossScaleName[] = "loss_scale.scale";
inline constexpr char kSkippedStepsName[] = "loss_scale.skipped_steps";

// On if train.precision is fp16.
LossScaleRule loss_scale_rule(const wire::TrainSpec& train);

class LossScaler {
 public:
  // The scale is 1 if the rule is off.
  explicit LossScaler(const wire::TrainSpec& train);

  bool is_on() const { return rule_.is_on; }
  float scale() const { return state_.scale; }
  LossScaleState& state() { return state_; }
  const LossScaleState& state() const { return state_; }
  void reset();  // to the scale of a new run

  bool update(bool is_finite) { return update_loss_scale(state_, rule_, is_finite); }

 private:
  const float initial_;
  const LossScaleRule rule_;
  LossScaleState state_;
};

}  // namespace lockstep
