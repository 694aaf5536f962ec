// A row of the table of optimizers (optimizers.h). Each optimizer's file has one row.
//
// Thread-safety: values; an OptimizerRule is for one thread at a time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/optim/update_rules.h"

namespace lockstep {

// How a group changes the settings of the job.
struct OptimizerGroup {
  double lr_scale = 1;
  double weight_decay_scale = 1;
};

// The inputs of one update besides the buffers.
struct OptimizerStep {
  Step step = 0;  // 0-based; bias corrections use it
  double lr = 0;
  float grad_scale = 1;      // multiplies every gradient first; 1 changes no bit
  bool keeps_zeros = false;  // of segments that are pruned
};

// An optimizer with the settings of a job.
struct OptimizerRule {
  std::vector<std::string> state_names;  // names in PyTorch, in the order of the rule's states
  // REQUIRES: at most limits::kUpdateGroups groups.
  std::function<UpdateFactors(const OptimizerStep&, std::span<const OptimizerGroup>)> factors;
};

struct OptimizerRow {
  std::string_view name;  // optimizer.name
  // kUsage; the message names the key, its value and the allowed values.
  Status (*check)(const wire::OptimizerSpec&) = nullptr;
  OptimizerRule (*make)(const wire::OptimizerSpec&) = nullptr;  // REQUIRES: check() is OK
};

// `of_group(step, group)` gives the factors of one group.
template <typename Rule, typename OfGroup>
OptimizerRule make_rule(std::vector<std::string> state_names, OfGroup of_group) {
  LOCKSTEP_CHECK(state_names.size() == Rule::kStates, "every state has a name");
  return {std::move(state_names),
          [of_group = std::move(of_group)](const OptimizerStep& step,
                                           std::span<const OptimizerGroup> groups) mutable {
            LOCKSTEP_CHECK(groups.size() <= limits::kUpdateGroups, "more groups than there can be");
            GroupFactors<Rule> factors;
            for (size_t i = 0; i < groups.size(); ++i) factors.of[i] = of_group(step, groups[i]);
            return UpdateFactors(factors);
          }};
}

// The code that rows share.
inline float as_float(double x) {
  return static_cast<float>(x);
}
inline double decay_of(const wire::OptimizerSpec& spec, const OptimizerGroup& group) {
  return spec.weight_decay() * group.weight_decay_scale;
}

// NaN fails each of these checks.
inline Status wrong_optimizer_setting(const std::string& key, const std::string& rule,
                                      double value) {
  return {Code::kUsage, "optimizer." + key + " must be " + rule + ", not " + std::to_string(value)};
}
inline Status check_fraction(const std::string& key, double value) {
  if (value >= 0 && value < 1) return Status::ok();
  return wrong_optimizer_setting(key, "at least 0 and below 1", value);
}
inline Status check_not_negative(const std::string& key, double value) {
  return value >= 0 ? Status::ok() : wrong_optimizer_setting(key, "0 or more", value);
}
inline Status check_eps(const wire::OptimizerSpec& spec) {
  return spec.eps() > 0 ? Status::ok() : wrong_optimizer_setting("eps", "above 0", spec.eps());
}

}  // namespace lockstep
