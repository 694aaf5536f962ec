// The facts of a run's loss that its records depend on.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct LossFacts {
  bool knows_right = true;           // tells right predictions from wrong ones
  bool has_weights = false;          // the mean is divided by the samples' weight (kControlWeight)
  std::vector<std::string> metrics;  // names, in the order of the control section
  // By metric: in which turns of a batch (comm/run/plan/step_plan.h) it is given, bit by bit.
  // Empty: all of them in every turn.
  std::vector<uint32_t> metric_turns = {};
  uint64_t labels_per_sample = 1;  // that a prediction is made for
  bool is_given(size_t metric, uint32_t turn) const {
    return metric_turns.empty() || (metric_turns[metric] >> turn & 1u) != 0;
  }
};

}  // namespace lockstep
