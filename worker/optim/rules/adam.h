// adam (L2) and adamw (decoupled decay): one rule with different factors.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cmath>

#include "worker/optim/rules/element.h"

namespace lockstep {

struct AdamFactors {
  float grad_scale = 1;
  float decay = 1;         // adamw: 1 - lr * weight_decay
  float weight_decay = 0;  // adam
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float step_size = 0;              // lr / (1 - beta1^t)
  float sqrt_bias_correction2 = 1;  // sqrt(1 - beta2^t)
  float eps = 0;
};

// state: exp_avg, exp_avg_sq
struct Adam {
  using Factors = AdamFactors;
  static constexpr int kStates = 2;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    const float d = decayed_gradient(p, g, f);
    update_moments(state[0], state[1], d, f);
    const float denominator = std::sqrt(state[1]) / f.sqrt_bias_correction2 + f.eps;
    p = p * f.decay - f.step_size * state[0] / denominator;
  }
};

}  // namespace lockstep
