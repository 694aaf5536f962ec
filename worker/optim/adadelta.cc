#include "worker/optim/rules/adadelta.h"

#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

Status check_adadelta(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_eps(spec));
  return check_fraction("rho", spec.rho());
}

OptimizerRule make_adadelta(const wire::OptimizerSpec& spec) {
  return make_rule<Adadelta>(
      {"square_avg", "acc_delta"}, [spec](const OptimizerStep& step, const OptimizerGroup& group) {
        return AdadeltaFactors{.grad_scale = step.grad_scale,
                               .lr = as_float(step.lr * group.lr_scale),
                               .weight_decay = as_float(decay_of(spec, group)),
                               .rho = as_float(spec.rho()),
                               .one_minus_rho = as_float(1 - spec.rho()),
                               .eps = as_float(spec.eps())};
      });
}

}  // namespace

constinit const OptimizerRow kAdadeltaRow{"adadelta", check_adadelta, make_adadelta};

}  // namespace lockstep
