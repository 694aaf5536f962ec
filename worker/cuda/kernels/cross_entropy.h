// Softmax cross-entropy of one row of logits, and its gradient. The gradient may overwrite the
// logits.
//
// Logits are T (float or Bf16), all arithmetic is float. A row is `stride` wide, and its first
// `classes` elements are real. The rest is padding: its values count for nothing, and its gradient
// is always zero. The target of a row: row_target.h.
//
// A lane reads its groups (groups.h) once and keeps the largest logit so far and the sum of
// exp(logit - largest), which it scales whenever the largest grows (Milakov, Gimelshein, Online
// normalizer calculation for softmax, 2018). A second pass writes the gradient.
//
// YARDSTICK for 32,768 rows of 50,304 Bf16: 3.3 GB are read and 3.3 GB written, so at least 2.0 ms
// at 3.35 TB/s, if the second pass finds its row in the cache (100 KB a row, two rows a
// multiprocessor), else 3.0 ms.
//
// Thread-safety: one team per row; rows are independent.
#pragma once

#include <cmath>
#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/base/labels.h"
#include "worker/cuda/kernels/exponential.h"
#include "worker/cuda/kernels/groups.h"
#include "worker/cuda/kernels/row_target.h"
#include "worker/cuda/kernels/team.h"

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

// The sums over the part of a row that a lane, and then a team, has seen. joined() is commutative
// bit for bit, as teams require: it does not scale the sum with the larger logit.
struct SoftmaxSums {
  float largest = -INFINITY;  // never NaN
  float total = 0;            // of exp(logit - largest); NaN if a logit is NaN
  float logits = 0;           // their sum, for label smoothing only
  uint32_t is_tied = 0;       // the label's logit stands at a smaller index as well

  template <typename T>
  LOCKSTEP_HOST_DEVICE static SoftmaxSums joined(const SoftmaxSums& a, const SoftmaxSums& b) {
    const bool is_a_larger = a.largest >= b.largest;
    const SoftmaxSums& upper = is_a_larger ? a : b;
    const SoftmaxSums& lower = is_a_larger ? b : a;
    const float factor = a.largest == b.largest ? 1.0f : exp_for<T>(lower.largest - upper.largest);
    return {upper.largest, upper.total + lower.total * factor, a.logits + b.logits,
            a.is_tied | b.is_tied};
  }
};

// The first classes of group g of a row that is `classes` long. Elements beyond are -infinity.
template <typename T>
LOCKSTEP_HOST_DEVICE GroupFloats<T> logits_of(const Group<T>& group, uint32_t g, uint32_t classes) {
  GroupFloats<T> logits;
  for (uint32_t j = 0; j < kGroup<T>; ++j) logits.of[j] = element(group, j);
  if ((g + 1) * kGroup < T >> classes) {
    for (uint32_t j = 0; j < kGroup<T>; ++j)
      if (g * kGroup<T> + j >= classes) logits.of[j] = -INFINITY;
  }
  return logits;
}

// The label whose rank in the row is asked for, and its logit.
struct SoughtLabel {
  uint32_t label = 0;
  float logit = 0;
};

// Adds group g.
template <typename T>
LOCKSTEP_HOST_DEVICE void add_logits(SoftmaxSums& sums, const GroupFloats<T>& x, uint32_t g,
                                     const SoughtLabel& sought) {
  float largest = sums.largest;
  for (uint32_t j = 0; j < kGroup<T>; ++j) largest = fmaxf(largest, x.of[j]);
  const float base = largest == -INFINITY ? 0.0f : largest;  // exp(-infinity) is 0 then, not NaN
  float parts[kGroup<T>];
  for (uint32_t j = 0; j < kGroup<T>; ++j) parts[j] = exp_for<T>(x.of[j] - base);
  for (uint32_t half = kGroup<T> / 2; half > 0; half /= 2) {
    for (uint32_t j = 0; j < half; ++j) parts[j] += parts[j + half];
  }
  sums.total = sums.total * exp_for<T>(sums.largest - base) + parts[0];
  sums.largest = largest;
  if (largest == sought.logit && g * kGroup<T> < sought.label) {  // seldom
    for (uint32_t j = 0; j < kGroup<T>; ++j)
      if (x.of[j] == sought.logit && g * kGroup<T> + j < sought.label) sums.is_tied = 1;
  }
}

// The gradient of group g: (softmax - wanted share) * scale. `of_all`: the sums of the row.
template <typename T>
LOCKSTEP_HOST_DEVICE Group<T> logits_gradient(const GroupFloats<T>& x, uint32_t g,
                                              const SoftmaxSums& of_all, RowWidth width,
                                              const RowTarget& target, float scale) {
  const float one_total = 1.0f / of_all.total;
  const auto holds = [&](int64_t label) { return static_cast<uint64_t>(label) / kGroup<T> == g; };
  const bool is_wanted = holds(target.label) || (target.share < 1 && holds(target.other));
  const float everywhere =
      target.smoothing > 0 ? target.smoothing / static_cast<float>(width.classes) : 0.0f;
  float gradient[kGroup<T>];
  for (uint32_t j = 0; j < kGroup<T>; ++j) {
    const uint32_t i = g * kGroup<T> + j;
    const float share = exp_for<T>(x.of[j] - of_all.largest) * one_total;
    const float wanted = is_wanted ? wanted_share(target, width, i) : everywhere;
    gradient[j] = i < width.classes ? (share - wanted) * scale : 0.0f;
  }
  return group_of<T>(gradient);
}

// The sums of a row. `is_smoothed`: with the sum of the logits.
template <bool Aligned, typename Team, typename T>
LOCKSTEP_TEAM_CODE SoftmaxSums softmax_sums(const Team& team, const T* logits, RowWidth width,
                                            const SoughtLabel& sought, bool is_smoothed) {
  return team.fold(
      group_count<T>(width.classes), SoftmaxSums{},
      [&](SoftmaxSums& sums, uint32_t g) {
        const GroupFloats<T> x =
            logits_of(load_group<Aligned>(logits, g, width.classes), g, width.classes);
        add_logits(sums, x, g, sought);
        if (is_smoothed)
          each_element<T, false>(g, width.classes,
                                 [&](uint32_t j, uint32_t) { sums.logits += x.of[j]; });
      },
      [](const SoftmaxSums& a, const SoftmaxSums& b) { return SoftmaxSums::joined<T>(a, b); });
}

// *loss = the sum over classes of -log softmax(logits) times the wanted share. gradient = (softmax
// - wanted share) * scale. If a label is not a class, the loss is NaN and the gradient is zero; for
// kIgnoredLabel the loss is zero.
//
// *right (null: not wanted) = 1 if the likelier label has the first of the largest logits, as
// std::max_element finds it, else 0. A label that is not a class is not right.
template <bool Aligned, typename Team, typename T>
LOCKSTEP_TEAM_CODE void cross_entropy_row(const Team& team, const T* logits, T* gradient,
                                          RowWidth width, const RowTarget& target, float scale,
                                          float* loss, uint32_t* right) {
  const bool is_mixed = target.share < 1;
  const bool counts = is_class(target.label, width) && (!is_mixed || is_class(target.other, width));
  const int64_t likelier = target.likelier();
  // Read these before the sums. After the sums a lane overwrites logits that other lanes no longer
  // read.
  const float of_label = counts ? to_float(logits[target.label]) : 0.0f;
  const float of_other = counts && is_mixed ? to_float(logits[target.other]) : 0.0f;
  const bool is_ranked = right != nullptr && is_class(likelier, width);
  const SoughtLabel sought{is_ranked ? static_cast<uint32_t>(likelier) : 0,
                           is_ranked ? to_float(logits[likelier]) : 0.0f};
  SoftmaxSums sums;
  if (counts || is_ranked)
    sums = softmax_sums<Aligned>(team, logits, width, sought, target.smoothing > 0);
  const bool is_right = is_ranked && !(sums.largest > sought.logit) && sums.is_tied == 0;
  const float log_total = std::log(sums.total);
  float of_row = target.label == kIgnoredLabel ? 0.0f : NAN;
  if (counts) {
    of_row = -(of_label - sums.largest - log_total);
    if (is_mixed) of_row = mixed(of_row, -(of_other - sums.largest - log_total), target.share);
    if (target.smoothing > 0) {
      const float mean = sums.logits / static_cast<float>(width.classes);
      const float of_all = sums.largest - mean + log_total;
      of_row = (1.0f - target.smoothing) * of_row + target.smoothing * of_all;
    }
  }
  team.once([&] {
    *loss = of_row;
    if (right != nullptr) *right = is_right ? 1 : 0;
  });
  team.lane_loop(group_count<T>(width.stride), [&](uint32_t g) {
    Group<T> out;
    if (counts && g * kGroup<T> < width.classes) {
      const Group<T> in = load_group<Aligned>(logits, g, width.classes);
      out = logits_gradient(logits_of(in, g, width.classes), g, sums, width, target, scale);
    }
    store_group<Aligned>(gradient, g, width.stride, out);
  });
}

}  // namespace lockstep::cuda
