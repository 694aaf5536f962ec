// Softmax cross-entropy of one slot, with its gradient and the number of right predictions. Plain
// floats: host code that runs the same under every tensor library.
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

namespace lockstep {

struct SlotLoss {
  double sum = 0;        // of the samples' losses
  uint64_t correct = 0;  // samples whose largest logit is their label's (the first, on a tie)
};

// logits: (B, classes) row-major, B over positions too where samples are sequences. When `gradient`
// (B, classes) is not null it gets the gradient of sum / step_samples: softmax minus one at the
// label, divided by the labels of the whole step. REQUIRES: 0 <= labels[i] < classes.
// Rows are summed in order: several calls for parts of a slot add up to the same only per row.
SlotLoss softmax_cross_entropy(const float* logits, const int64_t* labels, uint64_t batch,
                               uint64_t classes, uint64_t step_samples, float* gradient);

}  // namespace lockstep
