// Dropout's mask for LibTorch's operators (worker/cuda/kernels/dropout.h has the rule).
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

namespace lockstep {

// Fills mask[0, n): 1 / (1 - p) if element i is kept, 0 if it is dropped. 0 <= p < 1.
void fill_dropout_mask(uint64_t key, double p, float* mask, uint64_t n);

}  // namespace lockstep
