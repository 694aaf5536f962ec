// Dynamic loss scaling. The loss is multiplied by a scale, so small gradients of fp16 do not
// vanish. Gradients are divided by the scale when they are applied. The scale falls after a step
// that overflowed, and rises after many steps that fit (Micikevicius et al., Mixed Precision
// Training, 2018; rules and defaults are torch.amp.GradScaler's). The code runs on host and device
// alike.
//
// INVARIANTS
//  L1 The state changes only in the two functions below, and depends only on the sums over all
//  slots.
//     So the state is the same on every rank.
//  L2 The scale is at least kSmallestLossScale. If a step overflows even at this scale, the scale
//     cannot help, and the step is applied as in fp32.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cmath>
#include <cstdint>

#include "comm/base/host_device_macro.h"

namespace lockstep {

inline constexpr float kSmallestLossScale = 1;

// Part of the boundary state.
struct LossScaleState {
  float scale = kSmallestLossScale;
  int64_t good_steps = 0;     // in a row, since the scale last changed or a step overflowed
  int64_t skipped_steps = 0;  // of the run; the optimizer did not update in these steps
};

struct LossScaleRule {
  bool is_on = false;
  float growth = 2;
  float backoff = 0.5f;
  int64_t growth_every = 2000;
};

// Updates the state after a step. `is_finite`: all sums of the step are finite. True: apply the
// step, with the scale from before the call. False: skip the step.
LOCKSTEP_HOST_DEVICE bool update_loss_scale(LossScaleState& state, const LossScaleRule& rule,
                                            bool is_finite) {
  if (!rule.is_on) return true;
  if (!is_finite) {
    state.good_steps = 0;
    if (state.scale <= kSmallestLossScale) return true;  // L2
    const float fallen = state.scale * rule.backoff;
    state.scale = fallen > kSmallestLossScale ? fallen : kSmallestLossScale;
    ++state.skipped_steps;
    return false;
  }
  if (++state.good_steps < rule.growth_every) return true;
  state.good_steps = 0;
  if (const float grown = state.scale * rule.growth; std::isfinite(grown)) state.scale = grown;
  return true;
}

// Whether gradients can be divided by the weight of a step's samples.
LOCKSTEP_HOST_DEVICE bool is_weight(float weight) {
  return weight > 0 && std::isfinite(weight);
}

// A step whose samples have no such weight: nothing to update with, and nothing overflowed.
LOCKSTEP_HOST_DEVICE bool pass_over_step(LossScaleState& state) {
  ++state.skipped_steps;
  return false;
}

}  // namespace lockstep
