#include "worker/optim/kernels.h"

#include <cmath>

#include "comm/base/clones.h"

namespace lockstep {
namespace {

LOCKSTEP_CLONES
void sgd_plain(float* __restrict params, const float* __restrict grads, uint64_t n, float lr,
               float weight_decay) {
  for (uint64_t i = 0; i < n; ++i) params[i] -= lr * (grads[i] + weight_decay * params[i]);
}

LOCKSTEP_CLONES
void sgd_momentum(float* __restrict params, float* __restrict buffer, const float* __restrict grads,
                  uint64_t n, float lr, float momentum, float weight_decay) {
  for (uint64_t i = 0; i < n; ++i) {
    const float v = buffer[i] * momentum + (grads[i] + weight_decay * params[i]);
    buffer[i] = v;
    params[i] -= lr * v;
  }
}

LOCKSTEP_CLONES
void adamw(float* __restrict params, float* __restrict exp_avg, float* __restrict exp_avg_sq,
           const float* __restrict grads, uint64_t n, AdamwFactors f) {
  for (uint64_t i = 0; i < n; ++i) {
    const float g = grads[i];
    const float m = exp_avg[i] + f.one_minus_beta1 * (g - exp_avg[i]);
    const float v = exp_avg_sq[i] * f.beta2 + f.one_minus_beta2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const float denominator = std::sqrt(v) / f.sqrt_bias_correction2 + f.eps;
    params[i] = params[i] * f.decay - f.step_size * m / denominator;
  }
}

}  // namespace

void sgd_update(float* params, float* momentum_buffer, const float* grads, uint64_t n,
                const SgdFactors& f) {
  if (momentum_buffer == nullptr) {
    sgd_plain(params, grads, n, f.lr, f.weight_decay);
  } else {
    sgd_momentum(params, momentum_buffer, grads, n, f.lr, f.momentum, f.weight_decay);
  }
}

void adamw_update(float* params, float* exp_avg, float* exp_avg_sq, const float* grads, uint64_t n,
                  const AdamwFactors& factors) {
  adamw(params, exp_avg, exp_avg_sq, grads, n, factors);
}

}  // namespace lockstep
