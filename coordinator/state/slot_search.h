// The search that assign_slots() uses (slots.h). From all ways to cut [0, slots) into runs, one for
// each owner, it finds the one with the fewest partials. If several have equally few, it takes the
// one in which the owners of each node together hold the fewest complete subtrees.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::coordinator {

using Sizes = std::vector<uint32_t>;  // in slots, by owner

// `most`: by owner, the most slots that it may have; each has at least one. `node_sizes`: by node,
// the number of its owners, who are neighbours. If the search would take too long (hundreds of
// owners with uneven runs), nodes do not count. REQUIRES: the sum of `most` is at least `slots`.
Sizes fewest_partials(const Sizes& most, const Sizes& node_sizes, uint32_t slots);

}  // namespace lockstep::coordinator
