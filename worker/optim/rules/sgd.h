// sgd: plain, with momentum, or with Nesterov momentum.
// Thread-safety: pure functions of their arguments.
#pragma once

#include "worker/optim/rules/element.h"

namespace lockstep {

struct SgdFactors {
  float grad_scale = 1;
  float lr = 0;
  float momentum = 0;
  float weight_decay = 0;
};

struct Sgd {
  using Factors = SgdFactors;
  static constexpr int kStates = 0;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float*, float g, const Factors& f) {
    p -= f.lr * decayed_gradient(p, g, f);
  }
};

// state: momentum_buffer
struct SgdMomentum {
  using Factors = SgdFactors;
  static constexpr int kStates = 1;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    float& buffer = state[0];
    buffer = buffer * f.momentum + decayed_gradient(p, g, f);
    p -= f.lr * buffer;
  }
};

struct SgdNesterov {
  using Factors = SgdFactors;
  static constexpr int kStates = 1;
  LOCKSTEP_HOST_DEVICE static void update(float& p, float* state, float g, const Factors& f) {
    float& buffer = state[0];
    const float d = decayed_gradient(p, g, f);
    buffer = buffer * f.momentum + d;
    p -= f.lr * (d + f.momentum * buffer);
  }
};

}  // namespace lockstep
