// The parts that all optimizers' rules share: one element, for host and device alike.
//
// A rule is a type that has
//   Factors                   what a step computes once, with a grad_scale
//   kStates                   flat buffers of state
//   update(p, state, g, f)    one element; state[0 .. kStates), zero before the first step
//
// Rules use only +, -, *, / and sqrt on floats, without contraction. IEEE fixes every result, so
// the bits depend neither on the instruction set nor on where a range is cut. The order of rounding
// is the same as in PyTorch's single-tensor code (torch/optim/*.py).
//
// Factors are computed in double once a step, and rounded once. In single precision beta^t would be
// off by 1e-4 after a few thousand steps.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include "comm/base/host_device_macro.h"

namespace lockstep {

// `grad_scale` multiplies the gradient first (clipping, loss scaling); 1 changes no bit.
// `weight_decay` is L2, added to the gradient; adamw has its own decay.

// The gradient that an optimizer sees.
template <typename Factors>
LOCKSTEP_HOST_DEVICE float decayed_gradient(float p, float g, const Factors& f) {
  return g * f.grad_scale + f.weight_decay * p;
}

// One step of the running averages of gradients and of their squares (Adam's and NAdam's).
template <typename Factors>
LOCKSTEP_HOST_DEVICE void update_moments(float& exp_avg, float& exp_avg_sq, float d,
                                         const Factors& f) {
  exp_avg += f.one_minus_beta1 * (d - exp_avg);
  exp_avg_sq = exp_avg_sq * f.beta2 + f.one_minus_beta2 * d * d;
}

}  // namespace lockstep
