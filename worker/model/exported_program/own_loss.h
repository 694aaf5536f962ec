// A model that gives losses instead of logits: one loss for each sample, with weights and metrics.
//
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// As many as the control section has elements for (worker/engine/flat_layout.h).
inline constexpr uint32_t kMostMetrics = 11;

struct OwnLoss {
  bool takes_labels = false;
  bool has_weights = false;          // a sample counts with its weight; else each counts as one
  std::vector<std::string> metrics;  // names; at most kMostMetrics
};

}  // namespace lockstep
