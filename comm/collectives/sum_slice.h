// The sum over all ranks' partials of one slice of the gradient buffer, for backends that hold the
// partials.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/collectives/collective.h"

namespace lockstep {

// The place of a leaf's first element of the slice.
using LeafAt = std::function<const float*(const Leaf&)>;

// out[i] is the tree sum of element slice.begin + i: by the gradients' program up to the end of the
// statistics section (`control`), by the control program after it.
void sum_slice(const StepMerge& merge, uint64_t control, const ElementRange& slice,
               const LeafAt& leaf_at, float* out);

// Equal if ranks add up the same partials in the same order.
uint64_t hash_of(const StepMerge& merge);

}  // namespace lockstep
