// Softmax cross-entropy of a slot's rows, with its gradient and whether the prediction is right.
// Plain floats: host code that runs the same under every tensor library.
//
// A row's exponentials are computed once, in blocks that stay in the first-level cache, by an exp
// of our own: +, - and * alone, so IEEE fixes its bits on every machine and the compiler can take
// many at a time. It is the textbook reduction x = n ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two
// parts (Cody and Waite, 1980) and Taylor's polynomial of degree 7, whose remainder is 5e-9 there:
// below float's own rounding. Below -87, where the result would soon be denormal, it is 0.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>

#include "worker/cuda/row_target.h"

namespace lockstep {

struct SlotLoss {
  double sum = 0;  // of the samples' losses
  uint64_t correct =
      0;  // samples whose largest logit is the likelier label's (the first, on a tie)

  void add(const SlotLoss& row) {
    sum += row.sum;
    correct += row.correct;
  }
};

// Of one row of logits, (classes). When `gradient` (classes) is not null it gets the gradient of
// sum / step_samples: softmax minus what is wanted (row_target.h), divided by the labels of the
// whole step. A row whose label is kIgnoredLabel (comm/base/labels.h) has no loss, no gradient and
// is not right. REQUIRES: other labels from 0 up to below `classes`.
SlotLoss softmax_cross_entropy(const float* row, const RowTarget& target, uint64_t classes,
                               uint64_t step_samples, float* gradient);

}  // namespace lockstep
