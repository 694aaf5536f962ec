#include <algorithm>

#include "comm/base/gpu/cuda_status.h"
#include "comm/collectives/gate_word.h"
#include "comm/collectives/nccl/queue_kernels.h"

namespace lockstep::nccl {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostBlocks = 1024;  // sums share the device with backward

struct DeviceAtomics {
  static __device__ uint64_t fetch_or(uint64_t* word, uint64_t bits) {
    return atomicOr(reinterpret_cast<unsigned long long*>(word), bits);
  }
};

__global__ void sum_kernel(__grid_constant__ const DeviceSum sum) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < sum.elements; i += stride)
    sum.out[i] = sum_element(sum, i);
}

__global__ void put_tag_kernel(uint64_t* words, uint64_t tag) {
  words[0] = tag;
  words[1] = ~tag;
}

__global__ void check_tag_kernel(const uint64_t* words, TagCheck check, uint64_t* gate,
                                 uint64_t* differs) {
  if (words[0] == check.tag && words[1] == ~check.tag) return;
  close_gate<DeviceAtomics>(gate);
  *differs = check.generation;
  __threadfence_system();
}

}  // namespace

Status launch_sum(const DeviceSum& sum, cudaStream_t stream) {
  if (sum.elements == 0) return Status::ok();
  const auto blocks = static_cast<uint32_t>(
      std::min<uint64_t>((sum.elements + kThreads - 1) / kThreads, kMostBlocks));
  sum_kernel<<<blocks, kThreads, 0, stream>>>(sum);
  return cuda::cuda_status(cudaGetLastError(), "launch a sum of partials");
}

Status launch_put_tag(uint64_t* words, uint64_t tag, cudaStream_t stream) {
  put_tag_kernel<<<1, 1, 0, stream>>>(words, tag);
  return cuda::cuda_status(cudaGetLastError(), "launch a tag");
}

Status launch_check_tag(const uint64_t* words, const TagCheck& check, uint64_t* gate,
                        uint64_t* differs, cudaStream_t stream) {
  check_tag_kernel<<<1, 1, 0, stream>>>(words, check, gate, differs);
  return cuda::cuda_status(cudaGetLastError(), "launch the check of a tag");
}

}  // namespace lockstep::nccl
