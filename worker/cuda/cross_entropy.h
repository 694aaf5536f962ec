// Softmax cross-entropy of one row of logits, and its gradient. The gradient may overwrite the
// logits.
//
// Logits are T (float or Bf16), all arithmetic is float. A row is `stride` wide, and its first
// `classes` elements are real. The rest is padding: no code reads it, and its gradient is always
// zero. The target of a row: row_target.h.
//
// Thread-safety: one team per row; rows are independent.
#pragma once

#include <cmath>
#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/base/labels.h"
#include "worker/cuda/bf16.h"
#include "worker/cuda/row_target.h"
#include "worker/cuda/team.h"

namespace lockstep::cuda {

struct RowWidth {
  uint32_t classes = 0;
  uint32_t stride = 0;  // >= classes
};

// The factor of a label's loss in the gradient.
LOCKSTEP_HOST_DEVICE float loss_share(uint64_t step_labels) {
  return 1.0f / static_cast<float>(step_labels);
}

LOCKSTEP_HOST_DEVICE bool is_class(int64_t label, RowWidth width) {
  return label >= 0 && label < static_cast<int64_t>(width.classes);
}

// The wanted share of class i: the gradient of the loss is softmax minus this share.
LOCKSTEP_HOST_DEVICE float wanted_share(const RowTarget& target, RowWidth width, uint32_t i) {
  float wanted = i == static_cast<uint64_t>(target.label) ? target.label_weight() : 0.0f;
  if (target.share < 1 && i == static_cast<uint64_t>(target.other)) wanted += target.other_weight();
  if (target.smoothing > 0) wanted += target.smoothing / static_cast<float>(width.classes);
  return wanted;
}

// *loss = the sum over classes of -log softmax(logits) times the wanted share. gradient = (softmax
// - wanted share) * scale. If a label is not a class, the loss is NaN and the gradient is zero; for
// kIgnoredLabel the loss is zero.
template <typename Team, typename T>
LOCKSTEP_TEAM_CODE void cross_entropy_row(const Team& team, const T* logits, T* gradient,
                                          RowWidth width, const RowTarget& target, float scale,
                                          float* loss) {
  const bool is_mixed = target.share < 1;
  if (!is_class(target.label, width) || (is_mixed && !is_class(target.other, width))) {
    team.lane_loop(width.stride, [&](uint32_t i) { gradient[i] = from_float<T>(0.0f); });
    team.once([&] { *loss = target.label == kIgnoredLabel ? 0.0f : NAN; });
    return;
  }
  // Read these before the sums. Behind the sums a lane overwrites logits that other lanes no longer
  // read.
  const float of_label = to_float(logits[target.label]);
  const float of_other = is_mixed ? to_float(logits[target.other]) : 0.0f;
  const float largest = team.max(width.classes, [&](uint32_t i) { return to_float(logits[i]); });
  const float log_total = std::log(
      team.sum(width.classes, [&](uint32_t i) { return std::exp(to_float(logits[i]) - largest); }));
  float of_row = -(of_label - largest - log_total);
  if (is_mixed) of_row = mixed(of_row, -(of_other - largest - log_total), target.share);
  if (target.smoothing > 0) {
    const float below =
        team.sum(width.classes, [&](uint32_t i) { return largest - to_float(logits[i]); });
    const float of_all = below / static_cast<float>(width.classes) + log_total;
    of_row = (1.0f - target.smoothing) * of_row + target.smoothing * of_all;
  }
  team.once([&] { *loss = of_row; });
  team.lane_loop(width.stride, [&](uint32_t i) {
    if (i >= width.classes) {
      gradient[i] = from_float<T>(0.0f);
      return;
    }
    const float share = std::exp(to_float(logits[i]) - largest - log_total);
    gradient[i] = from_float<T>((share - wanted_share(target, width, i)) * scale);
  });
}

// True if the label has the first of the largest logits, as std::max_element finds it. Call this
// before cross_entropy_row(). A label that is not a class is not right.
template <typename Team, typename T>
LOCKSTEP_TEAM_CODE bool is_right_row(const Team& team, const T* logits, RowWidth width,
                                     int64_t label) {
  if (!is_class(label, width)) return false;
  const float of_label = to_float(logits[label]);
  const float ahead = team.sum(width.classes, [&](uint32_t i) {
    const float x = to_float(logits[i]);
    const bool is_ahead = i < static_cast<uint64_t>(label) ? x >= of_label : x > of_label;
    return is_ahead ? 1.0f : 0.0f;
  });
  return ahead == 0;
}

}  // namespace lockstep::cuda
