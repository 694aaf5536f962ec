#include "worker/engine/loss.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "comm/base/labels.h"
#include "comm/base/target_clones.h"

namespace lockstep {
namespace {

constexpr uint64_t kLanes = 16;    // partial results side by side, on any machine
constexpr uint64_t kBlock = 1024;  // floats; REQUIRED: a multiple of kLanes

// e^x for x <= 0; a NaN stays one.
inline float exp_below_zero(float x) {
  constexpr float kLeast = -87;
  constexpr float kToInteger = 12582912;  // 1.5 * 2^23: above it a float has no places left
  const float shifted = x * 1.44269504f + kToInteger;
  const float n = shifted - kToInteger;  // x / ln 2, rounded
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1;
  p = p * r + 1;
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) + 127) << 23;  // 2^n
  return x < kLeast ? 0.0f : p * std::bit_cast<float>(power);
}

// NaNs are passed over; minus infinity where there is nothing else.
LOCKSTEP_CLONES
float largest_of(const float* __restrict row, uint64_t n) {
  std::array<float, kLanes> lane;
  lane.fill(-std::numeric_limits<float>::infinity());
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (uint64_t l = 0; l < kLanes; ++l) lane[l] = row[i + l] > lane[l] ? row[i + l] : lane[l];
  for (uint64_t l = 0; i + l < n; ++l) lane[l] = row[i + l] > lane[l] ? row[i + l] : lane[l];
  return *std::max_element(lane.begin(), lane.end());
}

// out[i] = e^(row[i] - largest), and their sum. REQUIRES: n <= kBlock.
LOCKSTEP_CLONES
float exponentials(const float* __restrict row, uint64_t n, float largest, float* __restrict out) {
  for (uint64_t i = 0; i < n; ++i) out[i] = exp_below_zero(row[i] - largest);
  std::array<float, kLanes> lane{};
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (uint64_t l = 0; l < kLanes; ++l) lane[l] += out[i + l];
  for (uint64_t l = 0; i + l < n; ++l) lane[l] += out[i + l];
  for (uint64_t half = kLanes / 2; half > 0; half /= 2)
    for (uint64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

LOCKSTEP_CLONES
void multiply(float* __restrict values, uint64_t n, float factor) {
  for (uint64_t i = 0; i < n; ++i) values[i] *= factor;
}

// How far the logits are below the largest, in sum.
LOCKSTEP_CLONES
double sum_below(const float* __restrict row, uint64_t n, float largest) {
  std::array<double, kLanes> lane{};
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (uint64_t l = 0; l < kLanes; ++l) lane[l] += double{largest} - double{row[i + l]};
  for (uint64_t l = 0; i + l < n; ++l) lane[l] += double{largest} - double{row[i + l]};
  for (uint64_t half = kLanes / 2; half > 0; half /= 2)
    for (uint64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

LOCKSTEP_CLONES
void subtract(float* __restrict values, uint64_t n, float amount) {
  for (uint64_t i = 0; i < n; ++i) values[i] -= amount;
}

// Whether the label's logit is the first of the largest.
bool is_right(const float* row, uint64_t label, float largest) {
  return row[label] == largest && std::find(row, row + label, largest) == row + label;
}

// The loss of a row whose exponentials sum to e^log_total.
double loss_of(const float* row, const RowTarget& target, uint64_t classes, float largest,
               double log_total) {
  const auto of = [&](int64_t label) { return log_total - (double{row[label]} - double{largest}); };
  double loss = of(target.label);
  if (target.share < 1)
    loss = double{target.share} * loss + double{1.0f - target.share} * of(target.other);
  if (target.smoothing > 0) {
    const double of_all =
        log_total + sum_below(row, classes, largest) / static_cast<double>(classes);
    loss = double{1.0f - target.smoothing} * loss + double{target.smoothing} * of_all;
  }
  return loss;
}

// Subtracts the target times `scale` from `gradient`, which holds the softmax times `scale`.
void subtract_wanted(const RowTarget& target, uint64_t classes, float scale, float* gradient) {
  gradient[target.label] -= scale * target.label_weight();
  if (target.share < 1) gradient[target.other] -= scale * target.other_weight();
  if (target.smoothing > 0)
    subtract(gradient, classes, scale * target.smoothing / static_cast<float>(classes));
}

}  // namespace

SlotScore add_samples(const SampleRows& has, const float* rows, uint64_t samples) {
  const auto next = [&] {
    double sum = 0;
    for (uint64_t i = 0; i < samples; ++i) sum += double{rows[i]};
    rows += samples;
    return sum;
  };
  SlotScore score;
  score.sum = next();
  if (has.has_weights) score.weight = next();
  if (has.has_right) score.correct = static_cast<uint64_t>(next());
  for (uint32_t i = 0; i < has.metrics; ++i) score.metrics[i] = next();
  return score;
}

SlotLoss softmax_cross_entropy(const float* row, const RowTarget& target, uint64_t classes,
                               uint64_t step_samples, float* gradient) {
  if (target.label == kIgnoredLabel) {
    if (gradient != nullptr) std::fill(gradient, gradient + classes, 0.0f);
    return {};
  }
  std::array<float, kBlock> scratch;
  const float scale = 1.0f / static_cast<float>(step_samples);
  const float largest = largest_of(row, classes);
  double total = 0;
  for (uint64_t c = 0; c < classes; c += kBlock) {
    float* const block = gradient == nullptr ? scratch.data() : gradient + c;
    total += double{exponentials(row + c, std::min(kBlock, classes - c), largest, block)};
  }
  SlotLoss loss;
  // A float, as a GPU writes it down.
  loss.sum = double{static_cast<float>(loss_of(row, target, classes, largest, std::log(total)))};
  loss.correct = is_right(row, static_cast<uint64_t>(target.likelier()), largest) ? 1 : 0;
  if (gradient == nullptr) return loss;
  multiply(gradient, classes, static_cast<float>(double{scale} / total));
  subtract_wanted(target, classes, scale, gradient);
  return loss;
}

}  // namespace lockstep
