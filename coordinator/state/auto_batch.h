// The arithmetic of train.global_batch auto: from what the workers have measured to one number.
// decide/open_term.h says when.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::coordinator {

// An epoch of fewer steps learns little and shows less; a batch that fits into memory may swallow a
// small data set whole.
inline constexpr uint64_t kLeastStepsAnEpoch = 20;

struct AutoBatchLimits {
  uint32_t slots = 0;             // > 0
  uint64_t samples = 0;           // of an epoch
  uint64_t smallest = 1;          // samples that a slot needs
  std::vector<uint64_t> largest;  // that each worker has room for; not empty, none is 0
};

// `slots` times a power of two: the largest that every worker has room for and that leaves an epoch
// kLeastStepsAnEpoch steps. The smallest slot that there can be, where even that leaves fewer.
uint64_t auto_global_batch(const AutoBatchLimits& limits);

}  // namespace lockstep::coordinator
