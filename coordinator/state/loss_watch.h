// The recent losses, against which decide() recognizes a spike (bad_loss.cc). Part of State.
//
// Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "comm/base/ids.h"
#include "comm/run/job/job.pb.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

// A loss is a spike if it is train.loss_spike times the median of so many losses of the same turn
// of a batch. With fewer losses before it, none is.
inline constexpr size_t kLossWindow = 100;

// A step of the lineage whose loss shows that its samples, or the weights, are damaged.
struct BadLoss {
  StepEntry step;
  std::string what;  // "its loss is not a finite number (nan)", ...
};

struct LossWatch {
  std::deque<std::pair<Step, double>> recent;  // the newest steps with a loss, oldest first
  std::optional<BadLoss> bad;                  // found in this turn; the run or the term ends
};

// The fault in the loss of the step, in words. Nothing if the loss is like the losses before.
// `turns`: of a batch (comm/run/plan/step_plan.h).
std::optional<std::string> wrong_with_loss(const LossWatch& watch, const wire::TrainSpec& train,
                                           const StepEntry& step, uint32_t turns);

// Adds the step to the recent ones.
void remember_loss(LossWatch& watch, const StepEntry& step, uint32_t turns);

}  // namespace lockstep::coordinator
