// Buckets for the duration of a step: from an mlp on one core to a large model on many GPUs. They
// are few, because each is a series on every worker.
#pragma once

#include <vector>

namespace lockstep {

inline std::vector<double> step_seconds_bounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5};
}

}  // namespace lockstep
