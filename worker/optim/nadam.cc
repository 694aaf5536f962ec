#include "worker/optim/rules/nadam.h"

#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

Status check_nadam(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_eps(spec));
  LOCKSTEP_RETURN_IF_ERROR(check_fraction("beta1", spec.beta1()));
  LOCKSTEP_RETURN_IF_ERROR(check_fraction("beta2", spec.beta2()));
  return check_not_negative("momentum_decay", spec.momentum_decay());
}

class NadamSchedule {
 public:
  explicit NadamSchedule(const wire::OptimizerSpec& spec) : spec_(spec) {}

  NadamFactors operator()(const OptimizerStep& step, const OptimizerGroup& group) {
    const Step now = step.step + 1;
    count_to(now);
    const auto t = static_cast<double>(now);
    const double momentum = momentum_at(t);
    const double next = momentum_at(t + 1);
    const double rate = step.lr * group.lr_scale;
    return {.grad_scale = step.grad_scale,
            .weight_decay = as_float(decay_of(spec_, group)),
            .one_minus_beta1 = as_float(1 - spec_.beta1()),
            .beta2 = as_float(spec_.beta2()),
            .one_minus_beta2 = as_float(1 - spec_.beta2()),
            .bias_correction2 = as_float(1 - std::pow(spec_.beta2(), t)),
            .gradient_step = as_float(rate * (1 - momentum) / (1 - product_)),
            .average_step = as_float(rate * next / (1 - product_ * next)),
            .eps = as_float(spec_.eps())};
  }

 private:
  // Dozat's schedule of the momentum.
  double momentum_at(double t) const {
    return spec_.beta1() * (1 - 0.5 * std::pow(0.96, t * spec_.momentum_decay()));
  }

  void count_to(Step now) {
    if (now < counted_) {
      counted_ = 0;
      product_ = 1;
    }
    while (counted_ < now) product_ *= momentum_at(static_cast<double>(++counted_));
  }

  wire::OptimizerSpec spec_;
  // mu_1 ... mu_t of the last step asked for: a function of t alone, kept because it takes t
  // multiplications.
  Step counted_ = 0;
  double product_ = 1;
};

OptimizerRule make_nadam(const wire::OptimizerSpec& spec) {
  return make_rule<Nadam>({"exp_avg", "exp_avg_sq"}, NadamSchedule(spec));
}

}  // namespace

constinit const OptimizerRow kNadamRow{"nadam", check_nadam, make_nadam};

}  // namespace lockstep
