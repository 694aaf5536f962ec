#include "worker/optim/rules/adam.h"

#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

Status check_adam(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_eps(spec));
  LOCKSTEP_RETURN_IF_ERROR(check_fraction("beta1", spec.beta1()));
  return check_fraction("beta2", spec.beta2());
}

// The decay is L2 in adam, and decoupled in adamw.
OptimizerRule make_adam_rule(const wire::OptimizerSpec& spec, bool is_decoupled) {
  return make_rule<Adam>({"exp_avg", "exp_avg_sq"}, [spec, is_decoupled](
                                                        const OptimizerStep& step,
                                                        const OptimizerGroup& group) {
    const auto t = static_cast<double>(step.step + 1);
    const double rate = step.lr * group.lr_scale;
    const double decay = decay_of(spec, group);
    return AdamFactors{.grad_scale = step.grad_scale,
                       .decay = is_decoupled ? as_float(1 - rate * decay) : 1.0f,
                       .weight_decay = is_decoupled ? 0.0f : as_float(decay),
                       .one_minus_beta1 = as_float(1 - spec.beta1()),
                       .beta2 = as_float(spec.beta2()),
                       .one_minus_beta2 = as_float(1 - spec.beta2()),
                       .step_size = as_float(rate / (1 - std::pow(spec.beta1(), t))),
                       .sqrt_bias_correction2 = as_float(std::sqrt(1 - std::pow(spec.beta2(), t))),
                       .eps = as_float(spec.eps())};
  });
}

OptimizerRule make_adam(const wire::OptimizerSpec& spec) {
  return make_adam_rule(spec, /*is_decoupled=*/false);
}

OptimizerRule make_adamw(const wire::OptimizerSpec& spec) {
  return make_adam_rule(spec, /*is_decoupled=*/true);
}

}  // namespace

constinit const OptimizerRow kAdamRow{"adam", check_adam, make_adam};
constinit const OptimizerRow kAdamwRow{"adamw", check_adam, make_adamw};

}  // namespace lockstep
