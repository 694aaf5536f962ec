#include "worker/optim/rules/sgd.h"

#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

Status check_sgd(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_fraction("momentum", spec.momentum()));
  if (spec.nesterov() && spec.momentum() == 0) {
    return Status(
        Code::kUsage,
        "optimizer.nesterov looks ahead along the momentum; set optimizer.momentum above 0");
  }
  return Status::ok();
}

OptimizerRule make_sgd(const wire::OptimizerSpec& spec) {
  const auto factors = [spec](const OptimizerStep& step, const OptimizerGroup& group) {
    return SgdFactors{.grad_scale = step.grad_scale,
                      .lr = as_float(step.lr * group.lr_scale),
                      .momentum = as_float(spec.momentum()),
                      .weight_decay = as_float(decay_of(spec, group))};
  };
  if (spec.momentum() == 0) return make_rule<Sgd>({}, factors);
  if (spec.nesterov()) return make_rule<SgdNesterov>({"momentum_buffer"}, factors);
  return make_rule<SgdMomentum>({"momentum_buffer"}, factors);
}

}  // namespace

constinit const OptimizerRow kSgdRow{"sgd", check_sgd, make_sgd};

}  // namespace lockstep
