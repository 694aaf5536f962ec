// nadam: Adam with Nesterov momentum (Dozat 2016).
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cmath>

#include "worker/optim/rules/element.h"

namespace lockstep {

struct NadamFactors {
  float grad_scale = 1;
  float weight_decay = 0;
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float bias_correction2 = 1;
  float gradient_step = 0;  // lr (1 - mu_t) / (1 - mu_1 ... mu_t)
  float average_step = 0;   // lr mu_{t+1} / (1 - mu_1 ... mu_{t+1})
  float eps = 0;
};

// state: exp_avg, exp_avg_sq
struct Nadam {
  using Factors = NadamFactors;
  static constexpr int kStates = 2;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    const float d = decayed_gradient(p, g, f);
    update_moments(state[0], state[1], d, f);
    const float denominator = std::sqrt(state[1] / f.bias_correction2) + f.eps;
    p -= f.gradient_step * d / denominator;
    p -= f.average_step * state[0] / denominator;
  }
};

}  // namespace lockstep
