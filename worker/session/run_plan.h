// What follows what in a run: train, evaluate at the end of every epoch and of the run, final
// checkpoint, end. Arithmetic on the applied step, the same on every member.
//
//   after a step:        eval if the epoch or the run ended and there is evaluation data,
//                        else checkpoint if the run ended, else train
//   after an evaluation: checkpoint if the run ended, else train
//   after checkpoint:    end
//
// Thread-safety: values.
#pragma once

#include "comm/base/ids.h"

namespace lockstep {

struct RunPlan {
  uint64_t steps_per_epoch = 1;  // > 0
  Step total_steps = 0;
  bool has_eval = false;

  bool ends_epoch(Step applied) const { return applied > 0 && applied % steps_per_epoch == 0; }

  Phase after_step(Step applied) const {
    const bool run_ended = applied >= total_steps;
    if (has_eval && (run_ended || ends_epoch(applied))) return Phase::kEval;
    return run_ended ? Phase::kCheckpoint : Phase::kTrain;
  }

  Phase after_eval(Step applied) const {
    return applied >= total_steps ? Phase::kCheckpoint : Phase::kTrain;
  }
};

}  // namespace lockstep
