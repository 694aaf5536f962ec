// The optimizers' passes over flat buffers on the CPU, in place (elements.h has the arithmetic).
//
// Thread-safety: pure functions of their arguments; ranges of different calls may not overlap.
#pragma once

#include <cstdint>

#include "worker/optim/elements.h"

namespace lockstep {

// `momentum_buffer` is null when momentum is 0.
void sgd_update(float* params, float* momentum_buffer, const float* grads, uint64_t n,
                bool nesterov, const SgdFactors& factors);
void adam_update(float* params, float* exp_avg, float* exp_avg_sq, const float* grads, uint64_t n,
                 const AdamFactors& factors);
void nadam_update(float* params, float* exp_avg, float* exp_avg_sq, const float* grads, uint64_t n,
                  const NadamFactors& factors);
// `grad_avg` is null unless centered, `momentum_buffer` when momentum is 0.
void rmsprop_update(float* params, float* square_avg, float* grad_avg, float* momentum_buffer,
                    const float* grads, uint64_t n, const RmspropFactors& factors);
void adagrad_update(float* params, float* sum, const float* grads, uint64_t n,
                    const AdagradFactors& factors);
void adadelta_update(float* params, float* square_avg, float* acc_delta, const float* grads,
                     uint64_t n, const AdadeltaFactors& factors);

}  // namespace lockstep
