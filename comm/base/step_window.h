// A run of steps as people write it: "10:20" is the steps after the 10th, up to and with the 20th.
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

// Steps counted from 0: [first, end).
struct StepWindow {
  Step first = 0;
  Step end = 0;
  bool contains(Step step) const { return step >= first && step < end; }
};

// Empty text: an empty window. kUsage: it is not two whole numbers of which the second is larger.
Result<StepWindow> parse_step_window(std::string_view text);

}  // namespace lockstep
