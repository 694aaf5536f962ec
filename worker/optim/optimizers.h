// The table of optimizers. A new optimizer needs its rule in a header, its row in a source (as in
// rules/sgd.h and sgd.cc), a line in update_rules.h and its name in LOCKSTEP_OPTIMIZERS.
//
// Thread-safety: constant tables and pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "worker/optim/optimizer_row.h"

namespace lockstep {

// clang-format off
// Every row, by the name of its constant without k and Row.
#define LOCKSTEP_OPTIMIZERS(OPTIMIZER)                                       \
  OPTIMIZER(Sgd) OPTIMIZER(Adam) OPTIMIZER(Adamw) OPTIMIZER(Nadam)           \
  OPTIMIZER(Rmsprop) OPTIMIZER(Adagrad) OPTIMIZER(Adadelta) OPTIMIZER(Muon)
// clang-format on

#define LOCKSTEP_DECLARE(Name) extern const OptimizerRow k##Name##Row;
LOCKSTEP_OPTIMIZERS(LOCKSTEP_DECLARE)
#undef LOCKSTEP_DECLARE

std::vector<std::string_view> optimizer_names();

// kUsage for an unknown name (the message names the nearest one), for values that make no sense,
// and for LBFGS, which would move the parameters while it evaluates them. Checks only the settings
// that the named optimizer uses.
Status check_optimizer(const wire::OptimizerSpec& spec);

// REQUIRES: check_optimizer(spec) is OK.
OptimizerRule make_optimizer_rule(const wire::OptimizerSpec& spec);

}  // namespace lockstep
