// The arithmetic of the optimizers: one pass over the flat buffers, in place.
//
// Only +, -, *, / and sqrt on floats, without contraction: IEEE fixes every result, so the bits
// depend neither on the instruction set nor on where the range was cut. The order of rounding is
// that of PyTorch's own (torch/optim/adamw.py, sgd.py, single tensor).
//
// Thread-safety: pure functions of their arguments; ranges of different calls may not overlap.
#pragma once

#include <cstdint>

namespace lockstep {

struct SgdFactors {
  float lr = 0;
  float momentum = 0;
  float weight_decay = 0;  // L2: added to the gradient
};

// `momentum_buffer` is zero before the first step; null when momentum is 0.
void sgd_update(float* params, float* momentum_buffer, const float* grads, uint64_t n,
                const SgdFactors& factors);

struct AdamwFactors {
  float decay = 1;  // 1 - lr * weight_decay
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float step_size = 0;              // lr / (1 - beta1^t)
  float sqrt_bias_correction2 = 1;  // sqrt(1 - beta2^t)
  float eps = 0;
};

void adamw_update(float* params, float* exp_avg, float* exp_avg_sq, const float* grads, uint64_t n,
                  const AdamwFactors& factors);

}  // namespace lockstep
