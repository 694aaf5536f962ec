// The table of optimizers. A new optimizer needs its rule in a header, its row in a source (as in
// rules/sgd.h and sgd.cc), a line in update_rules.h and a line in the table.
//
// Thread-safety: constant tables and pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "worker/optim/optimizer_row.h"

namespace lockstep {

extern const OptimizerRow kSgdRow;
extern const OptimizerRow kAdamRow;
extern const OptimizerRow kAdamwRow;
extern const OptimizerRow kNadamRow;
extern const OptimizerRow kRmspropRow;
extern const OptimizerRow kAdagradRow;
extern const OptimizerRow kAdadeltaRow;
extern const OptimizerRow kMuonRow;

std::vector<std::string_view> optimizer_names();

// kUsage for an unknown name (the message names the nearest one), for values that make no sense,
// and for LBFGS, which would move the parameters while it evaluates them. Checks only the settings
// that the named optimizer uses.
Status check_optimizer(const wire::OptimizerSpec& spec);

// REQUIRES: check_optimizer(spec) is OK.
OptimizerRule make_optimizer_rule(const wire::OptimizerSpec& spec);

}  // namespace lockstep
