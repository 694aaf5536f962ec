// Who checks whose work, and how results are compared: a member does its own share of a step, and
// the next two ranks do one piece of it again. Three opinions are enough to name who is wrong.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

namespace lockstep {

// Ranks after the owner that do its piece again; fewer in a small world.
inline constexpr uint32_t kCheckers = 2;

// Whether `rank` owns the piece or does it again.
bool takes_part(uint32_t rank, uint32_t owner, uint32_t world_size);

// First half of the XXH3-128 over the bytes: equal only for equal bits.
uint64_t hash_of(const float* values, uint64_t count);

}  // namespace lockstep
