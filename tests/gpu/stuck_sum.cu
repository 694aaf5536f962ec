#include "comm/base/gpu/cuda_status.h"
#include "tests/gpu/stuck_sum.h"

namespace lockstep::testing {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kSpinNs = 1'000;

__global__ void stuck_sum_kernel(StuckSum sum) {
  const uint64_t there = sum.has_peer ? sum.elements : sum.elements / 2;
  for (uint64_t i = threadIdx.x; i < there; i += kThreads) sum.out[i] = sum.own[i] + sum.peers[i];
  if (sum.has_peer) return;
  const volatile uint32_t* aborted = sum.aborted;
  while (*aborted == 0) __nanosleep(kSpinNs);
}

}  // namespace

Status launch_stuck_sum(const StuckSum& sum, cudaStream_t stream) {
  stuck_sum_kernel<<<1, kThreads, 0, stream>>>(sum);
  return cuda::cuda_status(cudaGetLastError(), "launch a sum that can get stuck");
}

}  // namespace lockstep::testing
