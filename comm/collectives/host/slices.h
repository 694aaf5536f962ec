// Says which rank sums what: a pure function of world size, bytes and links, the same on all ranks
// (H4).
//
//   direct  every rank reads everything and sums everything: one phase. For small operations, in
//           which latency counts, and for two ranks in one host.
//   slices  rank r sums slice r of the range and publishes it, and all others fetch it: two phases,
//           and the ranks share the work. COST.md has the bytes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/collectives/collective.h"

namespace lockstep::host {

enum class Algorithm { kDirect, kSlices };

// `two_on_one_host`: the world is two ranks that share memory.
Algorithm choose_algorithm(uint32_t world_size, uint64_t bytes, bool two_on_one_host);

// The part of `range` that `rank` sums with kSlices. May be empty. Cut at cache lines.
ElementRange slice_of(const ElementRange& range, uint32_t rank, uint32_t world_size);

}  // namespace lockstep::host
