// Learning rate as a pure function of the step, so that a resume needs no scheduler state.
//
//   constant     optimizer.lr
//   linear       straight down to min_lr                                (LinearLR)
//   cosine       half a cosine down to min_lr                           (CosineAnnealingLR)
//   step         optimizer.lr * gamma^(t / step_every), rounded down    (StepLR)
//   exponential  optimizer.lr * gamma^t                                 (ExponentialLR)
//   cyclic       min_lr up to max_lr in cycle_up steps and down in cycle_down, over and over; each
//                cycle is gamma times as high as the one before         (CyclicLR)
//   onecycle     max_lr / div_factor up to max_lr over pct_start of the steps, then down to
//                max_lr / (div_factor * final_div_factor), both by cosine (OneCycleLR)
//
// Before the schedule the rate rises over warmup_steps, in equal steps, to the schedule's first
// value. The first of these steps gets 1 / warmup_steps of the value. onecycle ignores
// warmup_steps, because it has its own warm-up.
//
// After the length of linear, cosine and onecycle the rate stays at its last value. tests/golden
// holds PyTorch's own trajectories to compare with.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

class Schedule {
 public:
  // kUsage for an unknown name (the message names the nearest one) and for values that make no
  // sense.
  static Result<Schedule> create(const wire::ScheduleSpec& spec, double optimizer_lr);

  // The rate of step `step` (0-based) in a run of `total_steps` steps.
  double lr(Step step, uint64_t total_steps) const;

 private:
  enum class Kind { kConstant, kLinear, kCosine, kStep, kExponential, kCyclic, kOneCycle };
  Schedule(Kind kind, const wire::ScheduleSpec& spec, double optimizer_lr)
      : kind_(kind), spec_(spec), base_lr_(optimizer_lr) {}

  // The rate t steps after the warm-up. `falling`: the number of steps after the warm-up.
  double after_warmup(uint64_t t, double falling) const;
  double cyclic(uint64_t t) const;
  double one_cycle(double t, double total) const;

  Kind kind_;
  wire::ScheduleSpec spec_;
  double base_lr_;
};

}  // namespace lockstep
