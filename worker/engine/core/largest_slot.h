// The largest slot that fits into a worker's memory, for train.global_batch auto: slots of 1, 2, 4,
// ... samples are tried until one takes more than there is.
//
// A size is tried only if twice what the size before it took is still there, so that a system
// without a second chance (a process that takes too much memory is killed) is not asked too much.
// Memory grows by no more than that: a part that is fixed and one a sample.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/base/status.h"

namespace lockstep {

struct SlotSearch {
  uint64_t smallest = 1;  // samples, a power of two
  uint64_t largest = 1;   // samples; a bound, any number
  uint64_t free_bytes = 0;
  uint64_t reserved_bytes = 0;  // of these: not for trials
};

// The most bytes that a step with a slot of so many samples had in use at a time; nothing: there
// were not enough, or it would have taken too long.
using SlotTrial = std::function<Result<std::optional<uint64_t>>(uint64_t samples)>;

// Of what is free, the part that a run may count on: not all of it can be used in the pieces that
// are asked for, and evaluations and checkpoints come as well.
uint64_t usable_bytes(const SlotSearch& search);

// A power of two. kConfig with the figures when the smallest does not fit; else trial's errors.
Result<uint64_t> find_largest_slot(const SlotSearch& search, const SlotTrial& trial);

}  // namespace lockstep
