// adadelta.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cmath>

#include "worker/optim/rules/element.h"

namespace lockstep {

struct AdadeltaFactors {
  float grad_scale = 1;
  float lr = 0;
  float weight_decay = 0;
  float rho = 0;
  float one_minus_rho = 0;
  float eps = 0;
};

// state: square_avg, acc_delta
struct Adadelta {
  using Factors = AdadeltaFactors;
  static constexpr int kStates = 2;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    const float d = decayed_gradient(p, g, f);
    float& square_avg = state[0];
    float& acc_delta = state[1];
    square_avg = square_avg * f.rho + f.one_minus_rho * d * d;
    const float delta = std::sqrt(acc_delta + f.eps) / std::sqrt(square_avg + f.eps) * d;
    acc_delta = acc_delta * f.rho + f.one_minus_rho * delta * delta;
    p -= f.lr * delta;
  }
};

}  // namespace lockstep
