// Dynamic loss scaling: gradients of fp16 are multiplied by a scale through the loss, so that small
// ones do not vanish, and divided by it when they are applied. The scale falls after a step in
// which something overflowed, and rises after many that fit (Micikevicius et al., Mixed Precision
// Training, 2018; rules and defaults are torch.amp.GradScaler's). For host and device alike.
//
// INVARIANTS
//  L1 The state moves only in update_loss_scale(), and only by what was summed over all slots: so
//     it is the same on every rank.
//  L2 The scale is at least kSmallestLossScale. Where even that overflows it is not for the scale
//     to judge, and the step is applied as in fp32.
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
  int64_t good_steps = 0;     // in a row, since the scale last changed
  int64_t skipped_steps = 0;  // of the run: the optimizer has made so many updates less
};

struct LossScaleRule {
  bool is_on = false;
  float growth = 2;
  float backoff = 0.5f;
  int64_t growth_every = 2000;
};

// After a step of which everything that was summed is finite, or not. True: it is to be applied,
// with the scale from before; false: it is skipped.
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

}  // namespace lockstep
