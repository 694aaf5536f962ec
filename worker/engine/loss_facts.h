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
  uint64_t labels_per_sample = 1;    // that a prediction is made for
};

}  // namespace lockstep
