// Softmax cross-entropy of a slot's rows, its gradient, and whether the prediction is right. The
// code works on plain floats, so it runs the same under every tensor library.
//
// It computes each exponential of a row once, in blocks that stay in the first-level cache. exp()
// is our own and uses only +, - and *: IEEE fixes its bits on every machine, and the compiler can
// vectorize it. exp() uses the textbook reduction x = n ln 2 + r, |r| <= ln 2 / 2. ln 2 has two
// parts (Cody and Waite, 1980). Taylor's polynomial of degree 7 follows; its remainder there is
// 5e-9, below float's own rounding. Below -87, where the result would soon be denormal, exp() gives
// 0.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "worker/cuda/kernels/row_target.h"
#include "worker/model/spec.h"

namespace lockstep {

struct SlotLoss {
  double sum = 0;  // of the samples' losses
  // Samples whose largest logit belongs to the likelier label. On a tie the first logit counts.
  uint64_t correct = 0;

  void add(const SlotLoss& row) {
    sum += row.sum;
    correct += row.correct;
  }
};

// The sums over a slot's samples, where a model gives losses, or train.loss is not cross-entropy.
struct SlotScore : SlotLoss {
  double weight = 0;                           // sum of the samples' weights; 0 without any
  std::array<double, kMostMetrics> metrics{};  // sums over the samples
};

// Rows of floats, one a sample in each: losses, then the others as far as there are any.
struct SampleRows {
  bool has_weights = false;
  bool has_right = false;
  uint32_t metrics = 0;

  uint32_t count() const { return 1 + (has_weights ? 1 : 0) + (has_right ? 1 : 0) + metrics; }
};

// Adds up each row in the order of its samples. `rows`: count() times `samples` floats.
SlotScore add_samples(const SampleRows& has, const float* rows, uint64_t samples);

// The mean loss of samples with weights. 0 if their sum is 0, and the step is skipped; NaN if the
// sum is negative or not finite.
inline double weighted_mean(double sum, double weight) {
  if (weight > 0 && std::isfinite(weight)) return sum / weight;
  return weight == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
}

// Loss of one row of logits, (classes). `gradient`, if not null, is (classes). It receives the
// gradient of sum / step_samples: (softmax - target distribution) / step_samples, with the target
// of row_target.h. `step_samples`: labels of the whole step. A row with the label kIgnoredLabel
// (comm/base/labels.h) has no loss and no gradient, and is not right. REQUIRES: all other labels
// lie in [0, classes).
SlotLoss softmax_cross_entropy(const float* row, const RowTarget& target, uint64_t classes,
                               uint64_t step_samples, float* gradient);

}  // namespace lockstep
