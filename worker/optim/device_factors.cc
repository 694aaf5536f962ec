#include "worker/optim/device_factors.h"

#include "comm/base/check.h"
#include "worker/optim/rules.h"

namespace lockstep {
namespace {

// `Kernel`: what computes on the device what `rule` says.
template <typename Kernel, typename Rule>
DeviceFactors factors_for(Rule rule) {
  return [rule = std::move(rule)](const OptimizerStep& step,
                                  std::span<const OptimizerGroup> groups) mutable {
    LOCKSTEP_CHECK(groups.size() <= limits::kUpdateGroups, "more groups than a kernel takes");
    cuda::GroupFactors<Kernel> factors;
    for (size_t i = 0; i < groups.size(); ++i) factors.of[i] = rule.factors(step, groups[i]);
    return cuda::UpdateFactors(factors);
  };
}

DeviceFactors sgd_factors(const wire::OptimizerSpec& spec) {
  const SgdRule rule{spec};
  if (spec.momentum() == 0) return factors_for<cuda::Sgd>(rule);
  if (spec.nesterov()) return factors_for<cuda::SgdNesterov>(rule);
  return factors_for<cuda::SgdMomentum>(rule);
}

DeviceFactors rmsprop_factors(const wire::OptimizerSpec& spec) {
  const RmspropRule rule{spec};
  if (spec.momentum() > 0) {
    return spec.centered() ? factors_for<cuda::Rmsprop<true, true>>(rule)
                           : factors_for<cuda::Rmsprop<false, true>>(rule);
  }
  return spec.centered() ? factors_for<cuda::Rmsprop<true, false>>(rule)
                         : factors_for<cuda::Rmsprop<false, false>>(rule);
}

}  // namespace

DeviceFactors make_device_factors(const wire::OptimizerSpec& spec) {
  const std::string& name = spec.name();
  if (name == "sgd") return sgd_factors(spec);
  if (name == "rmsprop") return rmsprop_factors(spec);
  if (name == "nadam") return factors_for<cuda::Nadam>(NadamRule{.spec = spec});
  if (name == "adagrad") return factors_for<cuda::Adagrad>(AdagradRule{spec});
  if (name == "adadelta") return factors_for<cuda::Adadelta>(AdadeltaRule{spec});
  return factors_for<cuda::Adam>(AdamRule{spec});  // adam, adamw
}

}  // namespace lockstep
