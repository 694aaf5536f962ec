// Softmax cross-entropy of one slot, with its gradient and the number of right predictions, in one
// pass over the logits. Plain floats: host code that runs the same under every tensor library.
//
// Thread-safety: a pure function of its arguments.
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
SlotLoss softmax_cross_entropy(const float* logits, const int64_t* labels, uint64_t batch,
                               uint64_t classes, uint64_t step_samples, float* gradient);

}  // namespace lockstep
