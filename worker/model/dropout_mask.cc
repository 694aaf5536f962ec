#include "worker/model/dropout_mask.h"

#include "worker/cuda/kernels/dropout.h"

namespace lockstep {

void fill_dropout_mask(uint64_t key, double p, float* mask, uint64_t n) {
  const cuda::DropoutRule rule = cuda::dropout_rule(p);
  for (uint64_t i = 0; i < n; i += 2) {
    const cuda::DropoutPair factors = cuda::dropout_pair(rule, key, i / 2);
    mask[i] = factors.first;
    if (i + 1 < n) mask[i + 1] = factors.second;
  }
}

}  // namespace lockstep
