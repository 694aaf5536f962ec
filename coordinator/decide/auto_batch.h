// train.global_batch auto: the coordinator's part.
//
// STATES, by the identity in the journal
//   open      no identity. Every worker measures before it registers, and reports the largest slot
//             that fits (Register.largest_slot). When all workers of generation 1 are here, G is V
//             times the least of these. decide() journals the whole identity, including G, in the
//             turn that ends the term. Such a term does nothing else.
//   resolved  the next term, and every later one, begins with G from the journal, like V. The
//             workers come back as after any term, and get the job.
//
//   open ── killed before that commit ──▶ open: workers report again when they come back
//   open ── killed after that commit ───▶ resolved
//
// INVARIANTS
//  G1 G is in the journal before anybody hears of it, and never changes: options belong to a term,
//     and a term begins with the journalled values (begin.h).
//  G2 No generation is prepared while G is open, so no step has ever seen another G.
//
// The additional term costs one reconnect, once in a run. In exchange there is one way from a job
// to the options.
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
