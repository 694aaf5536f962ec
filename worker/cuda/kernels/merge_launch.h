// Launches the merge of two partial sums of one rank: the addition of add_into()
// (reduction_tree.h).
//
// Pointers are device memory, aligned to 16 bytes. Work is enqueued on `stream`, and no call waits.
// A Status is about the launch.
//
// Thread-safety: any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/status.h"

namespace lockstep::cuda {

// into[i] += from[i]. REQUIRES: `elements` is a multiple of four, and the ranges do not overlap.
Status launch_add(float* into, const float* from, uint64_t elements, cudaStream_t stream);

}  // namespace lockstep::cuda
