// The table of optimizers (optimizer_list.h).
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "worker/optim/optimizer_row.h"

namespace lockstep {

std::vector<std::string_view> optimizer_names();

// kUsage for an unknown name (the message names the nearest one), for values that make no sense,
// and for LBFGS, which would move the parameters while it evaluates them. Checks only the settings
// that the named optimizer uses.
Status check_optimizer(const wire::OptimizerSpec& spec);

// REQUIRES: check_optimizer(spec) is OK.
OptimizerRule make_optimizer_rule(const wire::OptimizerSpec& spec);

}  // namespace lockstep
