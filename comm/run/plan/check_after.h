// After which steps members check each other for silent errors (train.check_every). Workers and the
// coordinator ask this one function, so none of them refuses or misses a check that another makes.
//
//   every train.check_every steps
//   after 1, 2, 4, ... kLastEarlyCheck steps, where errors of a setup show
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/base/ids.h"

namespace lockstep {

inline constexpr Step kLastEarlyCheck = 64;

// The number of checks before the one after `applied` steps: slots, buckets and ranks take turns by
// it. Nothing: no check is due. `every` 0: none ever is.
std::optional<uint64_t> check_ordinal(Step applied, uint64_t every);

// `Job`: wire::JobSpec, which this library does without.
template <typename Job>
std::optional<uint64_t> check_after(Step applied, const Job& job) {
  return check_ordinal(applied, job.train().check_every());
}

}  // namespace lockstep
