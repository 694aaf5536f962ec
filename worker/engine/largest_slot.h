// Finds the largest slot that fits into a worker's memory, for train.global_batch auto. The search
// tries slots of 1, 2, 4, ... samples until one takes more memory than there is.
//
// The search tries a size only if twice the memory of the size before it is usable. On some systems
// a process that takes too much memory is killed, so the search must not ask for too much. Doubling
// a slot at most doubles its memory, which has a fixed part and a part for each sample.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "comm/base/status.h"

namespace lockstep {

struct SlotSearch {
  uint64_t smallest = 1;  // samples, a power of two
  uint64_t largest = 1;   // samples; an upper bound, any number
  uint64_t free_bytes = 0;
  uint64_t reserved_bytes = 0;  // part of free_bytes that trials may not use
};

// The most bytes in use at a time during a step with a slot of `samples` samples. Nothing: the
// memory did not suffice, or the step would have taken too long.
using SlotTrial = std::function<Result<std::optional<uint64_t>>(uint64_t samples)>;

// The part of the free memory that a run may count on. Allocators cannot use all of it, and
// evaluations and checkpoints need memory too.
uint64_t usable_bytes(const SlotSearch& search);

// The workers with which a GPU sums over NCCL.
struct NcclPeers {
  uint32_t workers = 1;       // of the run
  uint32_t workers_here = 1;  // of these on this node
  bool is_exact = true;       // partials go to all peers, not around a ring
};

// The GPU memory that sums over NCCL take beyond the gradient buffers: NCCL's own buffers, an
// estimate from its source (limits::kNcclBytes, kNcclPeerBytes, kNcclFarPeerBytes; not measured),
// and the stages for the largest bucket. A stage that grows at least doubles, and outgrown ones
// stay: three stages. No rank sends more partials than a run of slots has subtrees.
uint64_t nccl_bytes(const NcclPeers& peers, uint32_t slots, uint64_t bucket_bytes);

// A bound for the size of a bucket, in bytes: the first cut after `bucket_bytes` closes it
// (bucket_plan.h). `tensor_bounds`: elements, ascending.
uint64_t largest_bucket(std::span<const uint64_t> tensor_bounds, uint64_t bucket_bytes);

// A power of two. kConfig, with the figures, if the smallest slot does not fit; else the errors of
// `trial`.
Result<uint64_t> find_largest_slot(const SlotSearch& search, const SlotTrial& trial);

}  // namespace lockstep
