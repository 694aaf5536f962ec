// What the members of a generation compare every train.check_every steps, to see memory or a
// processor that computes wrong without saying so (coordinator/state/corruption.h): their weights,
// the gradient of one slot, one slice of one sum. In turn it comes to every slot, bucket and rank.
//
// Only where all members compute the same bits (comm.numerics: exact), and only where there is
// somebody to compare with.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/wire/job.pb.h"
#include "coordinator/checkpoint/state_tensor.h"
#include "worker/engine/core/flat_layout.h"

namespace lockstep {

struct CheckPlan {
  uint32_t slot = 0;        // whose gradient is computed again
  uint32_t slot_owner = 0;  // rank
  uint32_t bucket = 0;      // of the sum that is checked
  uint32_t sum_owner = 0;   // rank whose slice of it
};

// The same on every rank. Nothing: `step` is not followed by a check.
std::optional<CheckPlan> plan_check(const wire::JobSpec& job, Step step,
                                    std::span<const SlotRun> slot_runs, uint32_t buckets);

// Of the parameters' gradients in a region; what pads them is nobody's result.
uint64_t hash_gradients(const FlatLayout& layout, const float* region);

// Of every tensor's bytes, in order.
uint64_t hash_of(std::span<const StateTensor> state);

}  // namespace lockstep
