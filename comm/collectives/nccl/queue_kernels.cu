#include <algorithm>

#include "comm/base/gpu/cuda_status.h"
#include "comm/collectives/nccl/queue_kernels.h"

namespace lockstep::nccl {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostBlocks = 1024;  // sums share the device with backward

__global__ void sum_kernel(__grid_constant__ const DeviceSum sum) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < sum.elements; i += stride)
    sum.out[i] = sum_element(sum, i);
}

}  // namespace

Status launch_sum(const DeviceSum& sum, cudaStream_t stream) {
  if (sum.elements == 0) return Status::ok();
  const auto blocks = static_cast<uint32_t>(
      std::min<uint64_t>((sum.elements + kThreads - 1) / kThreads, kMostBlocks));
  sum_kernel<<<blocks, kThreads, 0, stream>>>(sum);
  return cuda::cuda_status(cudaGetLastError(), "launch a sum of partials");
}

}  // namespace lockstep::nccl
