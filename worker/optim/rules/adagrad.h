// adagrad.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cmath>

#include "worker/optim/rules/element.h"

namespace lockstep {

struct AdagradFactors {
  float grad_scale = 1;
  float rate = 0;  // lr / (1 + t lr_decay)
  float weight_decay = 0;
  float eps = 0;
};

// state: sum
struct Adagrad {
  using Factors = AdagradFactors;
  static constexpr int kStates = 1;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    const float d = decayed_gradient(p, g, f);
    state[0] += d * d;
    p -= f.rate * d / (std::sqrt(state[0]) + f.eps);
  }
};

}  // namespace lockstep
