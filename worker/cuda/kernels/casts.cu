// Kernels of the cast to fp8: thin loops over the functions of fp8.h.
#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/kernels/device_team.cuh"
#include "worker/cuda/kernels/launch_shape.h"
#include "worker/cuda/kernels/layer_launch.h"

namespace lockstep::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostBlocks = 8192;  // more than any device runs at once

using Team = BlockTeam<kThreads, sizeof(uint32_t)>;

// The maximum is the same in any order, so blocks may come as they like.
__global__ void __launch_bounds__(kThreads) fp8_largest_kernel(Fp8Cast work) {
  __shared__ Team::Memory memory;
  const uint64_t groups = cast_groups(work);
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  const auto* x = reinterpret_cast<const Group<Bf16>*>(work.x);
  uint32_t mine = 0;
#pragma unroll 4
  for (uint64_t g = uint64_t{blockIdx.x} * kThreads + threadIdx.x; g < groups; g += stride)
    mine = larger(mine, largest_of(x[g]));
  const Team team(memory);
  const uint32_t all = team.combine(mine, [](uint32_t a, uint32_t b) { return larger(a, b); });
  team.once([&] { atomicMax(work.largest, all); });
}

template <typename F>
__global__ void __launch_bounds__(kThreads) fp8_cast_kernel(Fp8Cast work) {
  __shared__ Team::Memory memory;
  __shared__ CastTile tile;
  const Team team(memory);
  const float scale = fp8_scale<F>(*work.largest);
  if (blockIdx.x == 0) team.once([&] { *work.inverse_scale = 1 / scale; });
  const uint64_t tiles = cast_tiles(work);
  for (uint64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    cast_plain_tile<F>(team, work, scale, i, tile);
    __syncthreads();
    cast_transposed_tile(team, work, i, tile);
    __syncthreads();  // before the next tile is written
  }
}

}  // namespace

Status launch_fp8_cast(const Fp8Cast& work, cudaStream_t stream) {
  if (work.rows == 0 || work.columns == 0) return Status::ok();
  if (work.columns % kFp8Multiple != 0 || work.padded_rows % kFp8Multiple != 0 ||
      !is_group_aligned(work.x))
    return {Code::kInternal, "a tensor of a size or at a place that the cast to fp8 cannot take"};
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(
      cudaMemsetAsync(work.largest, 0, sizeof *work.largest, stream), "clear the largest value"));
  fp8_largest_kernel<<<blocks_for(cast_groups(work), 4 * kThreads, kMostBlocks), kThreads, 0,
                       stream>>>(work);
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaGetLastError(), "launch the largest value"));
  const uint32_t blocks = blocks_for(cast_tiles(work), 1);
  if (work.is_gradient)
    fp8_cast_kernel<E5M2><<<blocks, kThreads, 0, stream>>>(work);
  else
    fp8_cast_kernel<E4M3><<<blocks, kThreads, 0, stream>>>(work);
  return cuda_status(cudaGetLastError(), "launch the cast to fp8");
}

}  // namespace lockstep::cuda
