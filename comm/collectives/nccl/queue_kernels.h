// Launches the communication stream's own kernel. All pointers are device memory.
//
// Thread-safety: any thread.
#pragma once

#include <cuda_runtime_api.h>

#include "comm/base/status.h"
#include "comm/collectives/nccl/sum_program.h"

namespace lockstep::nccl {

Status launch_sum(const DeviceSum& sum, cudaStream_t stream);

}  // namespace lockstep::nccl
