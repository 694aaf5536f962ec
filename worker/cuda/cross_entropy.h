// Softmax cross-entropy of one row of logits and its gradient, which may lie in their place.
//
// Logits are T (float or Bf16), all arithmetic is float. A row is `stride` wide, of which the first
// `classes` are real; the rest is padding, read by nobody and given a zero gradient, whatever it
// holds.
//
// Thread-safety: one team per row; rows are independent.
#pragma once

#include <cmath>
#include <cstdint>

#include "comm/base/host_device.h"
#include "worker/cuda/bf16.h"
#include "worker/cuda/team.h"

namespace lockstep::cuda {

inline constexpr int64_t kIgnoredLabel = -100;  // PyTorch's: no loss, no gradient

struct RowWidth {
  uint32_t classes = 0;
  uint32_t stride = 0;  // >= classes
};

// By what the gradient of a label's loss is multiplied.
LOCKSTEP_HOST_DEVICE float loss_share(uint64_t step_labels) {
  return 1.0f / static_cast<float>(step_labels);
}

// *loss = -log softmax(logits)[label]; gradient = (softmax - one at the label) * scale. A label
// that is no class gives a loss that is no number, and a zero gradient.
template <typename Team, typename T>
LOCKSTEP_TEAM_CODE void cross_entropy_row(const Team& team, const T* logits, T* gradient,
                                          RowWidth width, int64_t label, float scale, float* loss) {
  if (label < 0 || label >= static_cast<int64_t>(width.classes)) {
    team.lane_loop(width.stride, [&](uint32_t i) { gradient[i] = from_float<T>(0.0f); });
    team.once([&] { *loss = label == kIgnoredLabel ? 0.0f : NAN; });
    return;
  }
  const float largest = team.max(width.classes, [&](uint32_t i) { return to_float(logits[i]); });
  const float log_total = std::log(
      team.sum(width.classes, [&](uint32_t i) { return std::exp(to_float(logits[i]) - largest); }));
  // Each lane overwrites only what it alone reads from here on; the label's lane gives the loss.
  team.lane_loop(width.stride, [&](uint32_t i) {
    if (i >= width.classes) {
      gradient[i] = from_float<T>(0.0f);
      return;
    }
    const float log_share = to_float(logits[i]) - largest - log_total;
    const bool is_label = i == static_cast<uint64_t>(label);
    if (is_label) *loss = -log_share;
    gradient[i] = from_float<T>((std::exp(log_share) - (is_label ? 1.0f : 0.0f)) * scale);
  });
}

// Whether the label has the first of the largest logits, as std::max_element finds it. Before
// cross_entropy_row(). A label that is no class is not right.
template <typename Team, typename T>
LOCKSTEP_TEAM_CODE bool is_right_row(const Team& team, const T* logits, RowWidth width,
                                     int64_t label) {
  if (label < 0 || label >= static_cast<int64_t>(width.classes)) return false;
  const float of_label = to_float(logits[label]);
  const float ahead = team.sum(width.classes, [&](uint32_t i) {
    const float x = to_float(logits[i]);
    const bool is_ahead = i < static_cast<uint64_t>(label) ? x >= of_label : x > of_label;
    return is_ahead ? 1.0f : 0.0f;
  });
  return ahead == 0;
}

}  // namespace lockstep::cuda
