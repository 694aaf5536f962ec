// The sum over all ranks' partials of one slice of the gradient buffer, for backends that have the
// partials at hand.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/collectives/collective.h"

namespace lockstep {

// Where the slice's first element of a leaf lies.
using LeafAt = std::function<const float*(const Leaf&)>;

// out[i] is the tree sum of element slice.begin + i: of the gradients' program up to the end of
// the statistics section (`control`), of the control program behind it.
void sum_slice(const StepMerge& merge, uint64_t control, const ElementRange& slice,
               const LeafAt& leaf_at, float* out);

// Equal where ranks add up the same partials in the same order.
uint64_t hash_of(const StepMerge& merge);

}  // namespace lockstep
