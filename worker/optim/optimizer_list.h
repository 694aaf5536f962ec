// The one list of optimizers: the rules, for CPU and GPU, and the rows of the table.
//
// A new optimizer needs its rule in a header and its row in a source (as in rules/sgd.h and
// sgd.cc), and its lines here.
//
// Thread-safety: types and constants.
#pragma once

#include "worker/optim/rules/adadelta.h"
#include "worker/optim/rules/adagrad.h"
#include "worker/optim/rules/adam.h"
#include "worker/optim/rules/nadam.h"
#include "worker/optim/rules/rmsprop.h"
#include "worker/optim/rules/sgd.h"

namespace lockstep {

template <typename... Rules>
struct RuleList {};

using AllRules =
    RuleList<Sgd, SgdMomentum, SgdNesterov, Adam, Nadam, Rmsprop<false, false>,
             Rmsprop<false, true>, Rmsprop<true, false>, Rmsprop<true, true>, Adagrad, Adadelta>;

struct OptimizerRow;  // optimizer_row.h

extern const OptimizerRow kSgdRow;
extern const OptimizerRow kAdamRow;
extern const OptimizerRow kAdamwRow;
extern const OptimizerRow kNadamRow;
extern const OptimizerRow kRmspropRow;
extern const OptimizerRow kAdagradRow;
extern const OptimizerRow kAdadeltaRow;
extern const OptimizerRow kMuonRow;

inline constexpr const OptimizerRow* kOptimizerRows[] = {
    &kSgdRow,     &kAdamRow,    &kAdamwRow,    &kNadamRow,
    &kRmspropRow, &kAdagradRow, &kAdadeltaRow, &kMuonRow,
};

}  // namespace lockstep
