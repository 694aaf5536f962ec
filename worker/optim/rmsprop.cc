#include "worker/optim/rules/rmsprop.h"

#include "worker/optim/optimizers.h"

namespace lockstep {
namespace {

Status check_rmsprop(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_eps(spec));
  LOCKSTEP_RETURN_IF_ERROR(check_fraction("alpha", spec.alpha()));
  return check_fraction("momentum", spec.momentum());
}

OptimizerRule make_rmsprop(const wire::OptimizerSpec& spec) {
  const auto factors = [spec](const OptimizerStep& step, const OptimizerGroup& group) {
    return RmspropFactors{.grad_scale = step.grad_scale,
                          .lr = as_float(step.lr * group.lr_scale),
                          .weight_decay = as_float(decay_of(spec, group)),
                          .alpha = as_float(spec.alpha()),
                          .one_minus_alpha = as_float(1 - spec.alpha()),
                          .eps = as_float(spec.eps()),
                          .momentum = as_float(spec.momentum())};
  };
  std::vector<std::string> names = {"square_avg"};
  if (spec.centered()) names.push_back("grad_avg");
  if (spec.momentum() > 0) names.push_back("momentum_buffer");
  if (spec.momentum() > 0) {
    return spec.centered() ? make_rule<Rmsprop<true, true>>(names, factors)
                           : make_rule<Rmsprop<false, true>>(names, factors);
  }
  return spec.centered() ? make_rule<Rmsprop<true, false>>(names, factors)
                         : make_rule<Rmsprop<false, false>>(names, factors);
}

}  // namespace

constinit const OptimizerRow kRmspropRow{"rmsprop", check_rmsprop, make_rmsprop};

}  // namespace lockstep
