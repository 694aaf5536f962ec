// Dynamic loss scaling: gradients of fp16 are multiplied by a scale through the loss, so that small
// ones do not vanish, and divided by it when they are applied. The scale falls after a step in
// which something overflowed, and rises after many that fit (Micikevicius et al., Mixed Precision
// Training, 2018; rules and defaults are torch.amp.GradScaler's).
//
// INVARIANTS
//  L1 The state moves only in update(), and only by what was summed over all slots: so it is the
//     same on every rank.
//  L2 The scale is at least 1. Where even that overflows it is not for the scaler to judge, and the
//     step is applied as in fp32.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>

#include "comm/wire/job.pb.h"

namespace lockstep {

// Name of the scale in the boundary state.
inline constexpr char kLossScaleName[] = "loss_scale.scale";

// Part of the boundary state.
struct LossScaleState {
  float scale = 1;
  int64_t good_steps = 0;     // in a row, since the scale last changed
  int64_t skipped_steps = 0;  // of the run: the optimizer has made so many updates less
};

class LossScaler {
 public:
  // Off, with a scale of 1, unless train.precision is fp16.
  explicit LossScaler(const wire::TrainSpec& train);

  bool is_on() const { return is_on_; }
  float scale() const { return state_.scale; }
  LossScaleState& state() { return state_; }
  const LossScaleState& state() const { return state_; }
  void reset();  // to that of a new run

  // After a step of which everything that was summed is finite, or not. True: it is to be applied,
  // with the scale from before; false: it is skipped.
  bool update(bool is_finite);

 private:
  bool is_on_;
  float initial_;
  float growth_;
  int64_t growth_every_;
  float backoff_;
  LossScaleState state_;
};

}  // namespace lockstep
