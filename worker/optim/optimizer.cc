#include "worker/optim/optimizer.h"

#include "worker/optim/flat_optimizer.h"
#include "worker/optim/optimizer_check.h"
#include "worker/optim/rules.h"

namespace lockstep {
namespace {

template <typename Rule>
std::unique_ptr<Optimizer> make(Rule rule, uint64_t elements) {
  return std::make_unique<FlatOptimizer<Rule>>(std::move(rule), elements);
}

}  // namespace

Result<std::unique_ptr<Optimizer>> Optimizer::create(const wire::OptimizerSpec& spec,
                                                     uint64_t elements) {
  LOCKSTEP_RETURN_IF_ERROR(check_optimizer(spec));
  const std::string& name = spec.name();
  if (name == "sgd") return make(SgdRule{spec}, elements);
  if (name == "nadam") return make(NadamRule{spec}, elements);
  if (name == "rmsprop") return make(RmspropRule{spec}, elements);
  if (name == "adagrad") return make(AdagradRule{spec}, elements);
  if (name == "adadelta") return make(AdadeltaRule{spec}, elements);
  return make(AdamRule{spec}, elements);  // adam, adamw
}

}  // namespace lockstep
