// The kernel of merge_launch.h: one wide load and store per four elements.
#include <algorithm>

#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/kernels/merge_launch.h"

namespace lockstep::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostBlocks = 4096;  // more than any device runs at once

__global__ void add_kernel(float4* into, const float4* from, uint64_t quads) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < quads; i += stride) {
    const float4 left = into[i];
    const float4 right = from[i];
    into[i] = {left.x + right.x, left.y + right.y, left.z + right.z, left.w + right.w};
  }
}

}  // namespace

Status launch_add(float* into, const float* from, uint64_t elements, cudaStream_t stream) {
  const uint64_t quads = elements / 4;
  if (quads == 0) return Status::ok();
  const auto blocks =
      static_cast<uint32_t>(std::min<uint64_t>((quads + kThreads - 1) / kThreads, kMostBlocks));
  add_kernel<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<float4*>(into),
                                              reinterpret_cast<const float4*>(from), quads);
  return cuda_status(cudaGetLastError(), "launch the merge of two sums");
}

}  // namespace lockstep::cuda
