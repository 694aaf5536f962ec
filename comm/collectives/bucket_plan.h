// Cuts the flat gradient buffer into buckets.
//
// A bucket is a contiguous range of the buffer that is reduced at once, as soon as all gradients in
// it are there. Cuts lie at starts of tensors only, so that a bucket never waits for a tensor it
// holds half of. The last bucket also holds everything after the gradients: statistics and control.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/status.h"

namespace lockstep {

// Bounds in elements, ascending, from 0 to `elements`: bucket i is [bounds[i], bounds[i + 1]).
//
// `tensor_bounds`: starts of tensors and the end of the last one, ascending, in elements; those
// that are no multiple of kCutElements are never used as cuts. A bucket is closed by the first cut
// at which it holds at least `bucket_bytes`, so a tensor larger than that makes a larger bucket.
// Errors: kInternal when the bounds do not ascend or exceed `elements`, when there are no elements,
// or when their number is no multiple of kCutElements.
Result<std::vector<uint64_t>> plan_buckets(std::span<const uint64_t> tensor_bounds,
                                           uint64_t elements, uint64_t bucket_bytes);

}  // namespace lockstep
