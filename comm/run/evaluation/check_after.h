// After which steps members check each other for silent errors (train.check_every). Workers and the
// coordinator ask this one function, so none of them refuses or misses a check that another makes.
//
//   every train.check_every steps; where a batch has several turns, every next larger number of
//     steps that has no factor in common with them, so that no turn is left out of all checks
//   after 1, 2, 4, ... kLastEarlyCheck steps, where errors of a setup show
//   where the run may end, because no later check finds what was computed wrong until then
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/base/ids.h"
#include "comm/run/evaluation/evaluation_due.h"

namespace lockstep {

inline constexpr Step kLastEarlyCheck = 64;

// After which steps a run may end: the last, and with train.patience each that is evaluated. None
// is known in a run that no coordinator judges.
struct PossibleEnds {
  Evaluations evals;
  Step last = 0;              // 0: none
  bool are_at_evals = false;  // train.patience
  bool include(Step applied) const;
};

// The distance of checks, where a batch has so many turns. 0: none are due.
uint64_t check_distance(uint64_t every, uint32_t turns);

// The number of checks before the one after `applied` steps, without those where the run may end.
// Nothing: no such check is due. `every`: check_distance(); 0: none ever is.
std::optional<uint64_t> check_ordinal(Step applied, uint64_t every);

// The turn of the check after `applied` steps: slots, buckets and ranks come in its order. If only
// a possible end asks for the check, its turn is drawn by lot: with evaluations at a fixed distance
// it would else always compare the same slot. Nothing: no check is due. `every`: train.check_every.
std::optional<uint64_t> check_turn(Step applied, uint64_t every, const PossibleEnds& ends);

// `Job`: wire::JobSpec, which this library does without.
template <typename Job>
std::optional<uint64_t> check_after(Step applied, const Job& job, const PossibleEnds& ends) {
  return check_turn(applied, job.train().check_every(), ends);
}

}  // namespace lockstep
