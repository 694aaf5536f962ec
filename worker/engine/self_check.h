// In the steps of a check (comm/run/evaluation/check_after.h), the members of a generation compute
// the gradient of one slot and one slice of one sum again. The comparison finds memory or a
// processor that silently computes wrong (coordinator/state/corruption.h). Every slot, bucket and
// rank gets its turn. A member that is alone computes the slot a second time itself.
//
// Work is compared only if all members compute the same bits (comm.numerics: exact). Weights are
// compared in any case, and before each checkpoint (worker/runner/runner.h).
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/run/checkpoint/state_hash.h"
#include "comm/run/evaluation/check_after.h"
#include "comm/run/job/job.pb.h"
#include "worker/engine/flat_layout.h"

namespace lockstep {

struct CheckPlan {
  uint32_t slot = 0;        // other ranks compute its gradient again
  uint32_t slot_owner = 0;  // rank
  uint32_t bucket = 0;      // its sum is checked
  uint32_t sum_owner = 0;   // the rank whose slice of the sum is checked
};

// The same on every rank. Nothing: no work of `step` is checked.
std::optional<CheckPlan> plan_check(const wire::JobSpec& job, const PossibleEnds& ends, Step step,
                                    std::span<const SlotRun> slot_runs, uint32_t buckets);

// Hash of the parameters' gradients in a region, without padding.
uint64_t hash_gradients(const FlatLayout& layout, const float* region);

}  // namespace lockstep
