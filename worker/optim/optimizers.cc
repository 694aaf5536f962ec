#include "worker/optim/optimizers.h"

#include "comm/base/text/nearest.h"

namespace lockstep {
namespace {

const OptimizerRow* find_row(std::string_view name) {
  for (const OptimizerRow* row : kOptimizerRows) {
    if (row->name == name) return row;
  }
  return nullptr;
}

Status unknown_optimizer(const std::string& name) {
  const std::vector<std::string_view> names = optimizer_names();
  if (name == "lbfgs") {
    return Status(
        Code::kUsage,
        "optimizer.name is lbfgs, which evaluates the loss several times a step and moves "
        "the parameters in between, so no step has one gradient that the workers could "
        "sum. Use one of " +
            join_names(names));
  }
  return Status(Code::kUsage, "optimizer.name is '" + name + "', which is not known; it can be " +
                                  join_names(names) + did_you_mean(name, names));
}

}  // namespace

std::vector<std::string_view> optimizer_names() {
  std::vector<std::string_view> names;
  for (const OptimizerRow* row : kOptimizerRows) names.push_back(row->name);
  return names;
}

Status check_optimizer(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(check_not_negative("lr", spec.lr()));
  LOCKSTEP_RETURN_IF_ERROR(check_not_negative("weight_decay", spec.weight_decay()));
  LOCKSTEP_RETURN_IF_ERROR(check_not_negative("clip_norm", spec.clip_norm()));
  const OptimizerRow* row = find_row(spec.name());
  return row == nullptr ? unknown_optimizer(spec.name()) : row->check(spec);
}

OptimizerRule make_optimizer_rule(const wire::OptimizerSpec& spec) {
  const OptimizerRow* row = find_row(spec.name());
  LOCKSTEP_CHECK(row != nullptr, "an optimizer that was not checked");
  return row->make(spec);
}

}  // namespace lockstep
