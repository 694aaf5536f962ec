// The arithmetic of every optimizer, for one element: parameters and state in place.
//
// Only +, -, *, / and sqrt on floats, without contraction: IEEE fixes every result, so the bits
// depend neither on the instruction set nor on where a range was cut, on host and device alike. The
// order of rounding is that of PyTorch's own single-tensor code (torch/optim/*.py).
//
// Factors are computed in double once a step and rounded once: beta^t in single precision is off by
// 1e-4 after a few thousand steps.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cmath>

#include "comm/base/host_device_macro.h"

namespace lockstep {

// `grad_scale` multiplies the gradient first (clipping, loss scaling); 1 changes no bit.
// `weight_decay` is L2, added to the gradient, but for adamw.

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

struct SgdFactors {
  float grad_scale = 1;
  float lr = 0;
  float momentum = 0;
  float weight_decay = 0;
};

LOCKSTEP_HOST_DEVICE void sgd_element(float& p, float g, const SgdFactors& f) {
  p -= f.lr * decayed_gradient(p, g, f);
}

// `buffer` is zero before the first step.
LOCKSTEP_HOST_DEVICE void sgd_momentum_element(float& p, float& buffer, float g,
                                               const SgdFactors& f) {
  buffer = buffer * f.momentum + decayed_gradient(p, g, f);
  p -= f.lr * buffer;
}

LOCKSTEP_HOST_DEVICE void sgd_nesterov_element(float& p, float& buffer, float g,
                                               const SgdFactors& f) {
  const float d = decayed_gradient(p, g, f);
  buffer = buffer * f.momentum + d;
  p -= f.lr * (d + f.momentum * buffer);
}

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

LOCKSTEP_HOST_DEVICE void adam_element(float& p, float& exp_avg, float& exp_avg_sq, float g,
                                       const AdamFactors& f) {
  const float d = decayed_gradient(p, g, f);
  update_moments(exp_avg, exp_avg_sq, d, f);
  const float denominator = std::sqrt(exp_avg_sq) / f.sqrt_bias_correction2 + f.eps;
  p = p * f.decay - f.step_size * exp_avg / denominator;
}

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

LOCKSTEP_HOST_DEVICE void nadam_element(float& p, float& exp_avg, float& exp_avg_sq, float g,
                                        const NadamFactors& f) {
  const float d = decayed_gradient(p, g, f);
  update_moments(exp_avg, exp_avg_sq, d, f);
  const float denominator = std::sqrt(exp_avg_sq / f.bias_correction2) + f.eps;
  p -= f.gradient_step * d / denominator;
  p -= f.average_step * exp_avg / denominator;
}

struct RmspropFactors {
  float grad_scale = 1;
  float lr = 0;
  float weight_decay = 0;
  float alpha = 0;
  float one_minus_alpha = 0;
  float eps = 0;
  float momentum = 0;
};

// What the gradient is divided by. Rounding may leave a variance a little below zero.
LOCKSTEP_HOST_DEVICE float rmsprop_deviation(float square_avg, float grad_avg, float eps) {
  const float variance = square_avg - grad_avg * grad_avg;
  return std::sqrt(variance > 0 ? variance : 0) + eps;
}

// `grad_avg` is null unless centered, `buffer` unless there is momentum.
LOCKSTEP_HOST_DEVICE void rmsprop_element(float& p, float& square_avg, float* grad_avg,
                                          float* buffer, float g, const RmspropFactors& f) {
  const float d = decayed_gradient(p, g, f);
  square_avg = square_avg * f.alpha + f.one_minus_alpha * d * d;
  if (grad_avg != nullptr) *grad_avg += f.one_minus_alpha * (d - *grad_avg);
  const float deviation =
      rmsprop_deviation(square_avg, grad_avg != nullptr ? *grad_avg : 0.0f, f.eps);
  if (buffer == nullptr) {
    p -= f.lr * d / deviation;
    return;
  }
  *buffer = *buffer * f.momentum + d / deviation;
  p -= f.lr * *buffer;
}

struct AdagradFactors {
  float grad_scale = 1;
  float rate = 0;  // lr / (1 + t lr_decay)
  float weight_decay = 0;
  float eps = 0;
};

LOCKSTEP_HOST_DEVICE void adagrad_element(float& p, float& sum, float g, const AdagradFactors& f) {
  const float d = decayed_gradient(p, g, f);
  sum += d * d;
  p -= f.rate * d / (std::sqrt(sum) + f.eps);
}

struct AdadeltaFactors {
  float grad_scale = 1;
  float lr = 0;
  float weight_decay = 0;
  float rho = 0;
  float one_minus_rho = 0;
  float eps = 0;
};

LOCKSTEP_HOST_DEVICE void adadelta_element(float& p, float& square_avg, float& acc_delta, float g,
                                           const AdadeltaFactors& f) {
  const float d = decayed_gradient(p, g, f);
  square_avg = square_avg * f.rho + f.one_minus_rho * d * d;
  const float delta = std::sqrt(acc_delta + f.eps) / std::sqrt(square_avg + f.eps) * d;
  acc_delta = acc_delta * f.rho + f.one_minus_rho * delta * delta;
  p -= f.lr * delta;
}

}  // namespace lockstep
