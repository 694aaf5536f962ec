// Launches the merge of two partial sums of one rank: the addition of reduction_tree.h's
// add_into().
//
// Pointers are device memory, aligned to 16 bytes; work is enqueued on `stream` and nothing is
// waited for; a Status is about the launch.
//
// Thread-safety: any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/status.h"

namespace lockstep::cuda {

// into[i] += from[i]. REQUIRES: `elements` a multiple of four, the ranges apart.
Status launch_add(float* into, const float* from, uint64_t elements, cudaStream_t stream);

}  // namespace lockstep::cuda
