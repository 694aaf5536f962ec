#include "worker/optim/optimizer_check.h"

#include <string>
#include <string_view>

#include "comm/base/text/nearest.h"

namespace lockstep {
namespace {

constexpr std::string_view kOptimizerNames[] = {"sgd",     "adam",    "adamw",   "nadam",
                                                "rmsprop", "adagrad", "adadelta"};

Status bad_optimizer(const std::string& key, const std::string& rule, double value) {
  return Status(Code::kUsage,
                "optimizer." + key + " must be " + rule + ", not " + std::to_string(value));
}

// Comparisons are written so that a value that is no number fails them.
Status share(const std::string& key, double value) {
  if (value >= 0 && value < 1) return Status::ok();
  return bad_optimizer(key, "at least 0 and below 1", value);
}

Status not_negative(const std::string& key, double value) {
  return value >= 0 ? Status::ok() : bad_optimizer(key, "0 or more", value);
}

Status check_sgd(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(share("momentum", spec.momentum()));
  if (spec.nesterov() && spec.momentum() == 0) {
    return Status(Code::kUsage,
                  "optimizer.nesterov needs optimizer.momentum above 0: it looks ahead along it");
  }
  return Status::ok();
}

Status check_adam(const wire::OptimizerSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(share("beta1", spec.beta1()));
  LOCKSTEP_RETURN_IF_ERROR(share("beta2", spec.beta2()));
  return not_negative("momentum_decay", spec.momentum_decay());
}

Status check_name(const std::string& name) {
  if (name == "lbfgs") {
    return Status(
        Code::kUsage,
        "optimizer.name is lbfgs, which evaluates the loss several times a step and moves "
        "the parameters in between: then no step has one gradient that the workers could "
        "sum. Use one of " +
            join_names(kOptimizerNames));
  }
  return Status(Code::kUsage, "optimizer.name is '" + name + "', which is not known; it can be " +
                                  join_names(kOptimizerNames) +
                                  did_you_mean(name, kOptimizerNames));
}

}  // namespace

Status check_optimizer(const wire::OptimizerSpec& spec) {
  const std::string& name = spec.name();
  LOCKSTEP_RETURN_IF_ERROR(not_negative("lr", spec.lr()));
  LOCKSTEP_RETURN_IF_ERROR(not_negative("weight_decay", spec.weight_decay()));
  LOCKSTEP_RETURN_IF_ERROR(not_negative("clip_norm", spec.clip_norm()));
  if (name == "sgd") return check_sgd(spec);
  if (!(spec.eps() > 0)) return bad_optimizer("eps", "above 0", spec.eps());
  if (name == "adam" || name == "adamw" || name == "nadam") return check_adam(spec);
  if (name == "rmsprop") {
    LOCKSTEP_RETURN_IF_ERROR(share("alpha", spec.alpha()));
    return share("momentum", spec.momentum());
  }
  if (name == "adagrad") return not_negative("lr_decay", spec.lr_decay());
  if (name == "adadelta") return share("rho", spec.rho());
  return check_name(name);
}

}  // namespace lockstep
