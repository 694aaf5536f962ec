// Cuts the flat gradient buffer into buckets.
//
// A bucket is a contiguous range of the buffer. The ranks reduce it at once, as soon as all its
// gradients are there. Cuts lie at starts of tensors only, so a bucket never waits for a tensor
// that it holds only a part of. The last bucket also holds everything after the gradients:
// statistics and control.
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
// `tensor_bounds`: starts of tensors and the end of the last one, ascending, in elements. A start
// that is no multiple of kCutElements never becomes a cut. The first cut at which a bucket holds at
// least `bucket_bytes` closes it, so a tensor larger than that makes a larger bucket. If the last
// tensor alone is such a one, nothing before it waits for it: the last tensor is the model's first,
// and an embedding that is also the model's head is complete when backward ends. Errors:
// kInternal if the bounds do not ascend or exceed `elements`, if there are no elements, or if their
// number is no multiple of kCutElements.
Result<std::vector<uint64_t>> plan_buckets(std::span<const uint64_t> tensor_bounds,
                                           uint64_t elements, uint64_t bucket_bytes);

}  // namespace lockstep
