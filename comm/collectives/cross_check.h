// Says which rank checks whose work, and how ranks compare results. A member does its own share of
// a step. The next two ranks repeat one piece of it. Three results are enough to name the wrong
// one.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

namespace lockstep {

// The number of ranks after the owner that repeat its piece; fewer in a small world.
inline constexpr uint32_t kCheckers = 2;

// True if `rank` owns the piece or repeats it.
bool takes_part(uint32_t rank, uint32_t owner, uint32_t world_size);

// The first half of the XXH3-128 over the bytes: equal only for equal bits.
uint64_t hash_of(const float* values, uint64_t count);

}  // namespace lockstep
