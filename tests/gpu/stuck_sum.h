// The sum of two ranks' partials as a kernel that can get stuck half-way, as an NCCL collective
// does whose peer has died. It spins until it is aborted, and then returns as if it had finished.
//
// Thread-safety: any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/status.h"

namespace lockstep::testing {

struct StuckSum {
  const float* own = nullptr;
  const float* peers = nullptr;
  float* out = nullptr;
  uint64_t elements = 0;
  bool has_peer = true;               // else it sums half, and nothing more comes
  const uint32_t* aborted = nullptr;  // 0: not yet; in the host's memory
};
Status launch_stuck_sum(const StuckSum& sum, cudaStream_t stream);

}  // namespace lockstep::testing
