// The edges of a run: the script's code between two epochs (run.epochs(), coordinator/PROTOCOL.md).
// Workers, the coordinator and a resume ask these functions, so all know the same edges.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>

#include "comm/base/ids.h"
#include "comm/run/evaluation/evaluation_due.h"

namespace lockstep {

// A script that has edges says this of itself (Register.identity); else it says nothing.
inline constexpr char kLoopFact[] = "loop";
inline constexpr char kLoopOverEpochs[] = "epochs";

// `Facts`: a range of entries with key() and value(), such as wire::IdentityFact.
template <typename Facts>
bool has_edges(const Facts& facts) {
  return std::any_of(facts.begin(), facts.end(), [](const auto& fact) {
    return fact.key() == kLoopFact && fact.value() == kLoopOverEpochs;
  });
}

// Whether an edge follows the state after `applied` steps of a run with edges: at the end of every
// epoch, and at the end of the run, which ends its epoch there.
inline bool edge_due(const Evaluations& when, Step applied, Step end) {
  return applied > 0 && (applied >= end || applied % when.steps_per_epoch == 0);
}

}  // namespace lockstep
