// The losses of the steps before, to know one that is no number or a spike (bad_loss.cc); part of
// State.
//
// Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "comm/base/ids.h"
#include "comm/wire/job.pb.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

// A spike is so many times the median of these; before there are so many, none is.
inline constexpr size_t kLossWindow = 100;

// A step of the lineage whose loss shows that its samples, or the weights, are not what they should
// be.
struct BadLoss {
  StepEntry step;
  std::string what;  // "its loss is no number (nan)", ...
};

struct LossWatch {
  std::deque<std::pair<Step, double>> recent;  // of the newest steps with a loss, oldest first
  std::optional<BadLoss> bad;                  // found in this turn; the run or the term ends
};

// What is wrong with the loss of the step; nothing: it is as those before.
std::optional<std::string> wrong_with_loss(const LossWatch& watch, const wire::TrainSpec& train,
                                           const StepEntry& step);

// The step is one of those before, from here on.
void remember_loss(LossWatch& watch, const StepEntry& step);

}  // namespace lockstep::coordinator
