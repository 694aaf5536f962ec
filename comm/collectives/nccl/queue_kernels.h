// Launches the communication stream's own kernels. All pointers are device memory, except
// `differs`, which is pinned host memory that the device sees.
//
// Thread-safety: any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/collectives/nccl/sum_program.h"

namespace lockstep::nccl {

Status launch_sum(const DeviceSum& sum, cudaStream_t stream);

// words = (tag, ~tag).
Status launch_put_tag(uint64_t* words, uint64_t tag, cudaStream_t stream);

struct TagCheck {
  uint64_t tag = 0;
  Generation generation = 0;
};

// Unless `words` are (tag, ~tag): closes the gate and sets *differs to the generation.
Status launch_check_tag(const uint64_t* words, const TagCheck& check, uint64_t* gate,
                        uint64_t* differs, cudaStream_t stream);

}  // namespace lockstep::nccl
