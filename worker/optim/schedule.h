// Learning rate as a pure function of the step, so that a resume needs no scheduler state.
//
//   constant  optimizer.lr
//   cosine    linear to optimizer.lr over warmup_steps (the first step gets lr / warmup_steps),
//             then half a cosine down to min_lr                      (CosineAnnealingLR)
//   step      optimizer.lr * gamma^(t / step_every)                  (StepLR)
//   onecycle  max_lr / div_factor up to max_lr over pct_start of the steps, then down to
//             max_lr / (div_factor * final_div_factor), both by cosine (OneCycleLR)
//
// After the schedule's length the rate stays at its last value. tests/golden holds PyTorch's own
// trajectories against these.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

class Schedule {
 public:
  // kUsage for an unknown name (the nearest is named) and for values that make no sense.
  static Result<Schedule> create(const wire::ScheduleSpec& spec, double optimizer_lr);

  // The rate of step `step` (0-based) in a run of `total_steps`.
  double lr(Step step, uint64_t total_steps) const;

 private:
  enum class Kind { kConstant, kCosine, kStep, kOneCycle };
  Schedule(Kind kind, const wire::ScheduleSpec& spec, double optimizer_lr)
      : kind_(kind), spec_(spec), base_lr_(optimizer_lr) {}

  double cosine(double t, double total) const;
  double one_cycle(double t, double total) const;

  Kind kind_;
  wire::ScheduleSpec spec_;
  double base_lr_;
};

}  // namespace lockstep
