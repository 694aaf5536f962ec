// Softmax cross-entropy of one row of logits, in place: the logits become their gradient.
//
// Logits are T (float or Bf16), all arithmetic is float. A row is `stride` wide, of which the first
// `classes` are real; the rest is padding, read by nobody and given a zero gradient, whatever it
// holds.
//
// Thread-safety: one team per row; rows are independent.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/cuda/bf16.h"
#include "worker/cuda/team.h"

namespace lockstep::cuda {

inline constexpr int64_t kIgnoredLabel = -100;  // PyTorch's: no loss, no gradient

struct RowWidth {
  uint32_t classes = 0;
  uint32_t stride = 0;  // >= classes
};

// *loss = -log softmax(logits)[label]; logits = (softmax - one at the label) * scale. A label that
// is no class gives a loss that is no number, and a zero gradient.
template <typename Team, typename T>
LOCKSTEP_TEAM_CODE void cross_entropy_row(const Team& team, T* logits, RowWidth width,
                                          int64_t label, float scale, float* loss) {
  if (label < 0 || label >= static_cast<int64_t>(width.classes)) {
    team.lane_loop(width.stride, [&](uint32_t i) { logits[i] = from_float<T>(0.0f); });
    team.once([&] { *loss = label == kIgnoredLabel ? 0.0f : NAN; });
    return;
  }
  const float largest = team.max(width.classes, [&](uint32_t i) { return to_float(logits[i]); });
  const float log_total = std::log(
      team.sum(width.classes, [&](uint32_t i) { return std::exp(to_float(logits[i]) - largest); }));
  // Each lane overwrites only what it alone reads from here on; the label's lane gives the loss.
  team.lane_loop(width.stride, [&](uint32_t i) {
    if (i >= width.classes) {
      logits[i] = from_float<T>(0.0f);
      return;
    }
    const float log_share = to_float(logits[i]) - largest - log_total;
    const bool is_label = i == static_cast<uint64_t>(label);
    if (is_label) *loss = -log_share;
    logits[i] = from_float<T>((std::exp(log_share) - (is_label ? 1.0f : 0.0f)) * scale);
  });
}

}  // namespace lockstep::cuda
