// What the members of a generation compare every train.check_every steps: their weights, the
// gradient of one slot, and one slice of one sum. The comparison finds memory or a processor that
// silently computes wrong (coordinator/state/corruption.h). Every slot, bucket and rank gets its
// turn.
//
// Members check each other only if all of them compute the same bits (comm.numerics: exact), and
// only if there is more than one member.
//
// Thread-safety: pure functions; a CheckHash belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/base/hash.h"
#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/wire/job.pb.h"
#include "coordinator/checkpoint/state_tensor.h"
#include "worker/engine/core/flat_layout.h"

namespace lockstep {

struct CheckPlan {
  uint32_t slot = 0;        // other ranks compute its gradient again
  uint32_t slot_owner = 0;  // rank
  uint32_t bucket = 0;      // its sum is checked
  uint32_t sum_owner = 0;   // the rank whose slice of the sum is checked
};

// The same on every rank. Nothing: no check follows `step`.
std::optional<CheckPlan> plan_check(const wire::JobSpec& job, Step step,
                                    std::span<const SlotRun> slot_runs, uint32_t buckets);

// The hash of bytes that come in pieces.
class CheckHash {
 public:
  void update(const void* data, size_t bytes) { hash_.update(data, bytes); }
  uint64_t value() const;

 private:
  Xxh3 hash_;
};

// Hash of the parameters' gradients in a region, without padding.
uint64_t hash_gradients(const FlatLayout& layout, const float* region);

// Hash of the bytes of all tensors, in order.
uint64_t hash_of(std::span<const StateTensor> state);

}  // namespace lockstep
