// A range of steps as people write it: "10:20" means the steps after the 10th, up to and including
// the 20th.
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

// The half-open range [first, end), counted from 0.
struct StepWindow {
  Step first = 0;
  Step end = 0;
  bool contains(Step step) const { return step >= first && step < end; }
};

// Empty text gives an empty window. kUsage unless it is two whole numbers, the second larger.
Result<StepWindow> parse_step_window(std::string_view text);

}  // namespace lockstep
