// rmsprop: plain, centered, with momentum, or both.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cmath>

#include "worker/optim/rules/element.h"

namespace lockstep {

struct RmspropFactors {
  float grad_scale = 1;
  float lr = 0;
  float weight_decay = 0;
  float alpha = 0;
  float one_minus_alpha = 0;
  float eps = 0;
  float momentum = 0;
};

// The divisor of the gradient. Rounding may leave the variance a little below zero.
LOCKSTEP_HOST_DEVICE float rmsprop_deviation(float square_avg, float grad_avg, float eps) {
  const float variance = square_avg - grad_avg * grad_avg;
  return std::sqrt(variance > 0 ? variance : 0) + eps;
}

// state: square_avg; then grad_avg if centered; then momentum_buffer if there is momentum
template <bool Centered, bool Momentum>
struct Rmsprop {
  using Factors = RmspropFactors;
  static constexpr int kStates = 1 + Centered + Momentum;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    const float d = decayed_gradient(p, g, f);
    float& square_avg = state[0];
    square_avg = square_avg * f.alpha + f.one_minus_alpha * d * d;
    float mean = 0;
    if constexpr (Centered) {
      float& grad_avg = state[1];
      grad_avg += f.one_minus_alpha * (d - grad_avg);
      mean = grad_avg;
    }
    const float deviation = rmsprop_deviation(square_avg, mean, f.eps);
    if constexpr (Momentum) {
      float& buffer = state[1 + Centered];
      buffer = buffer * f.momentum + d / deviation;
      p -= f.lr * buffer;
    } else {
      p -= f.lr * d / deviation;
    }
  }
};

}  // namespace lockstep
