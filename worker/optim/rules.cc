#include "worker/optim/rules.h"

#include <cmath>

namespace lockstep {
namespace {

float f32(double x) {
  return static_cast<float>(x);
}

double decay_of(const wire::OptimizerSpec& spec, const OptimizerGroup& group) {
  return spec.weight_decay() * group.weight_decay_scale;
}

// Dozat's schedule of the momentum (NAdam).
double momentum_at(const wire::OptimizerSpec& spec, double t) {
  return spec.beta1() * (1 - 0.5 * std::pow(0.96, t * spec.momentum_decay()));
}

}  // namespace

std::vector<std::string> SgdRule::state_names() const {
  if (spec.momentum() == 0) return {};
  return {"momentum_buffer"};
}

SgdFactors SgdRule::factors(const OptimizerStep& step, const OptimizerGroup& group) const {
  return {.grad_scale = step.grad_scale,
          .lr = f32(step.lr * group.lr_scale),
          .momentum = f32(spec.momentum()),
          .weight_decay = f32(decay_of(spec, group))};
}

void SgdRule::pass(float* params, float* const* state, const float* grads, uint64_t n,
                   const SgdFactors& factors) const {
  float* buffer = spec.momentum() == 0 ? nullptr : state[0];
  sgd_update(params, buffer, grads, n, spec.nesterov(), factors);
}

AdamFactors AdamRule::factors(const OptimizerStep& step, const OptimizerGroup& group) const {
  const auto t = static_cast<double>(step.step + 1);
  const double rate = step.lr * group.lr_scale;
  const double decay = decay_of(spec, group);
  const bool is_decoupled = spec.name() == "adamw";
  return {.grad_scale = step.grad_scale,
          .decay = is_decoupled ? f32(1 - rate * decay) : 1.0f,
          .weight_decay = is_decoupled ? 0.0f : f32(decay),
          .one_minus_beta1 = f32(1 - spec.beta1()),
          .beta2 = f32(spec.beta2()),
          .one_minus_beta2 = f32(1 - spec.beta2()),
          .step_size = f32(rate / (1 - std::pow(spec.beta1(), t))),
          .sqrt_bias_correction2 = f32(std::sqrt(1 - std::pow(spec.beta2(), t))),
          .eps = f32(spec.eps())};
}

void AdamRule::pass(float* params, float* const* state, const float* grads, uint64_t n,
                    const AdamFactors& factors) const {
  adam_update(params, state[0], state[1], grads, n, factors);
}

NadamFactors NadamRule::factors(const OptimizerStep& step, const OptimizerGroup& group) {
  const Step now = step.step + 1;
  if (now < counted) {
    counted = 0;
    product = 1;
  }
  while (counted < now) product *= momentum_at(spec, static_cast<double>(++counted));
  const auto t = static_cast<double>(now);
  const double momentum = momentum_at(spec, t);
  const double next = momentum_at(spec, t + 1);
  const double rate = step.lr * group.lr_scale;
  return {.grad_scale = step.grad_scale,
          .weight_decay = f32(decay_of(spec, group)),
          .one_minus_beta1 = f32(1 - spec.beta1()),
          .beta2 = f32(spec.beta2()),
          .one_minus_beta2 = f32(1 - spec.beta2()),
          .bias_correction2 = f32(1 - std::pow(spec.beta2(), t)),
          .gradient_step = f32(rate * (1 - momentum) / (1 - product)),
          .average_step = f32(rate * next / (1 - product * next)),
          .eps = f32(spec.eps())};
}

void NadamRule::pass(float* params, float* const* state, const float* grads, uint64_t n,
                     const NadamFactors& factors) const {
  nadam_update(params, state[0], state[1], grads, n, factors);
}

std::vector<std::string> RmspropRule::state_names() const {
  std::vector<std::string> names = {"square_avg"};
  if (spec.centered()) names.push_back("grad_avg");
  if (spec.momentum() > 0) names.push_back("momentum_buffer");
  return names;
}

RmspropFactors RmspropRule::factors(const OptimizerStep& step, const OptimizerGroup& group) const {
  return {.grad_scale = step.grad_scale,
          .lr = f32(step.lr * group.lr_scale),
          .weight_decay = f32(decay_of(spec, group)),
          .alpha = f32(spec.alpha()),
          .one_minus_alpha = f32(1 - spec.alpha()),
          .eps = f32(spec.eps()),
          .momentum = f32(spec.momentum())};
}

void RmspropRule::pass(float* params, float* const* state, const float* grads, uint64_t n,
                       const RmspropFactors& factors) const {
  float* grad_avg = spec.centered() ? state[1] : nullptr;
  float* buffer = spec.momentum() > 0 ? state[spec.centered() ? 2 : 1] : nullptr;
  rmsprop_update(params, state[0], grad_avg, buffer, grads, n, factors);
}

AdagradFactors AdagradRule::factors(const OptimizerStep& step, const OptimizerGroup& group) const {
  const double rate = step.lr * group.lr_scale;
  return {.grad_scale = step.grad_scale,
          .rate = f32(rate / (1 + static_cast<double>(step.step) * spec.lr_decay())),
          .weight_decay = f32(decay_of(spec, group)),
          .eps = f32(spec.eps())};
}

void AdagradRule::pass(float* params, float* const* state, const float* grads, uint64_t n,
                       const AdagradFactors& factors) const {
  adagrad_update(params, state[0], grads, n, factors);
}

AdadeltaFactors AdadeltaRule::factors(const OptimizerStep& step,
                                      const OptimizerGroup& group) const {
  return {.grad_scale = step.grad_scale,
          .lr = f32(step.lr * group.lr_scale),
          .weight_decay = f32(decay_of(spec, group)),
          .rho = f32(spec.rho()),
          .one_minus_rho = f32(1 - spec.rho()),
          .eps = f32(spec.eps())};
}

void AdadeltaRule::pass(float* params, float* const* state, const float* grads, uint64_t n,
                        const AdadeltaFactors& factors) const {
  adadelta_update(params, state[0], state[1], grads, n, factors);
}

}  // namespace lockstep
