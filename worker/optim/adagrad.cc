#include "worker/optim/rules/adagrad.h"

#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

Status check_adagrad(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_eps(spec));
  return check_not_negative("lr_decay", spec.lr_decay());
}

OptimizerRule make_adagrad(const wire::OptimizerSpec& spec) {
  return make_rule<Adagrad>(
      {"sum"}, [spec](const OptimizerStep& step, const OptimizerGroup& group) {
        const double rate = step.lr * group.lr_scale;
        return AdagradFactors{
            .grad_scale = step.grad_scale,
            .rate = as_float(rate / (1 + static_cast<double>(step.step) * spec.lr_decay())),
            .weight_decay = as_float(decay_of(spec, group)),
            .eps = as_float(spec.eps())};
      });
}

}  // namespace

constinit const OptimizerRow kAdagradRow{"adagrad", check_adagrad, make_adagrad};

}  // namespace lockstep
