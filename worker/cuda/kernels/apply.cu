// Kernels of apply_launch.h: thin loops over apply_state.h and update_rules.h.
#include <algorithm>
#include <variant>

#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/kernels/apply_launch.h"
#include "worker/cuda/kernels/device_team.cuh"
#include "worker/optim/rules/average.h"

namespace lockstep::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostBlocks =
    4096;  // of a loop with a stride: more than any device runs at once

struct DeviceAtomics {
  static __device__ uint64_t compare_and_swap(uint64_t* word, uint64_t expected, uint64_t next) {
    return atomicCAS(reinterpret_cast<unsigned long long*>(word), expected, next);
  }
  static __device__ uint64_t fetch_or(uint64_t* word, uint64_t bits) {
    return atomicOr(reinterpret_cast<unsigned long long*>(word), bits);
  }
};

// 16 lanes a block of elements, so two blocks a warp.
__global__ void block_totals_kernel(TotalsWork work) {
  const uint32_t team = (blockIdx.x * kThreads + threadIdx.x) / kNormLanes;
  const uint32_t lane = threadIdx.x % kNormLanes;
  const bool is_mine = team < work.count;
  const TotalsBlock block = is_mine ? work.blocks[work.first + team] : TotalsBlock{};
  const float* values = work.sums + block.start;
  float squares = lane_squares(values, block.length, lane);
  uint32_t is_finite = is_lane_finite(values, block.length, lane) ? 1 : 0;
  for (uint32_t half = kNormLanes / 2; half > 0; half /= 2) {
    squares += __shfl_xor_sync(0xffffffff, squares, half);
    is_finite &= __shfl_xor_sync(0xffffffff, is_finite, half);
  }
  if (!is_mine || lane != 0) return;
  work.totals[work.first + team] = {block.in_norm != 0 ? squares : 0.0f, is_finite};
}

// One block of threads.
__global__ void __launch_bounds__(kTotalsLanes)
    decide_kernel(ApplyState* state, StepRule rule, const BlockTotals* totals, uint32_t blocks,
                  const float* control) {
  using Team = BlockTeam<kTotalsLanes, sizeof(Totals)>;
  __shared__ Team::Memory memory;
  const Totals sum = sum_of_blocks(Team(memory), totals, blocks);
  if (threadIdx.x == 0) decide<DeviceAtomics>(*state, rule, sum, control);
}

template <typename Rule>
__global__ void update_kernel(const StepVerdict* verdict, const UpdateChunk* chunks,
                              UpdateBuffers buffers, GroupFactors<Rule> groups, bool keeps_zeros) {
  if (verdict->applies == 0) return;
  const UpdateChunk chunk = chunks[blockIdx.x];
  typename Rule::Factors factors = groups.of[chunk.group];
  factors.grad_scale = verdict->grad_scale;
  for (uint32_t i = threadIdx.x * 4; i < chunk.length; i += kThreads * 4)
    update_quad<Rule>(buffers, chunk.start + i, factors, keeps_zeros && chunk.is_pruned != 0);
}

__global__ void statistics_kernel(const StepVerdict* verdict, const float* sums, uint64_t n,
                                  float slots, float* statistics) {
  if (verdict->applies == 0) return;
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += stride)
    statistics[i] = sums[i] / slots;
}

__global__ void average_kernel(const StepVerdict* verdict, const float* params, float* average,
                               uint64_t n, float rate) {
  if (verdict->applies == 0) return;
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += stride)
    average[i] = next_average(average[i], params[i], rate);
}

__global__ void close_kernel(ApplyState* state, uint64_t* answer) {
  *answer = close_gate<DeviceAtomics>(&state->gate);
}

template <typename Rule>
void start_update(const StepVerdict* verdict, const UpdateChunk* chunks, uint32_t count,
                  const UpdateBuffers& buffers, const GroupFactors<Rule>& factors, bool keeps_zeros,
                  cudaStream_t stream) {
  update_kernel<Rule>
      <<<count, kThreads, 0, stream>>>(verdict, chunks, buffers, factors, keeps_zeros);
}

uint32_t blocks_of(uint64_t n) {
  return static_cast<uint32_t>(std::min<uint64_t>((n + kThreads - 1) / kThreads, kMostBlocks));
}

}  // namespace

Status launch_block_totals(const TotalsWork& work, cudaStream_t stream) {
  if (work.count == 0) return Status::ok();
  const uint64_t threads = uint64_t{work.count} * kNormLanes;
  const auto blocks = static_cast<uint32_t>((threads + kThreads - 1) / kThreads);
  block_totals_kernel<<<blocks, kThreads, 0, stream>>>(work);
  return cuda_status(cudaGetLastError(), "launch the totals of gradients");
}

Status launch_decide(ApplyState* state, const StepRule& rule, const BlockTotals* totals,
                     uint32_t blocks, const float* control, cudaStream_t stream) {
  decide_kernel<<<1, kTotalsLanes, 0, stream>>>(state, rule, totals, blocks, control);
  return cuda_status(cudaGetLastError(), "launch the gate");
}

Status launch_update(const StepVerdict* verdict, const UpdateChunk* chunks, uint32_t count,
                     const UpdateBuffers& buffers, const UpdateFactors& factors, bool keeps_zeros,
                     cudaStream_t stream) {
  if (count == 0) return Status::ok();
  std::visit(
      [&](const auto& of) {
        start_update(verdict, chunks, count, buffers, of, keeps_zeros, stream);
      },
      factors);
  return cuda_status(cudaGetLastError(), "launch the optimizer");
}

Status launch_statistics(const StepVerdict* verdict, const float* sums, uint64_t n, uint32_t slots,
                         float* statistics, cudaStream_t stream) {
  if (n == 0) return Status::ok();
  statistics_kernel<<<blocks_of(n), kThreads, 0, stream>>>(verdict, sums, n,
                                                           static_cast<float>(slots), statistics);
  return cuda_status(cudaGetLastError(), "launch the statistics");
}

Status launch_average(const StepVerdict* verdict, const float* params, uint64_t n, float rate,
                      float* average, cudaStream_t stream) {
  if (n == 0) return Status::ok();
  average_kernel<<<blocks_of(n), kThreads, 0, stream>>>(verdict, params, average, n, rate);
  return cuda_status(cudaGetLastError(), "launch the average of the weights");
}

Status launch_close(ApplyState* state, uint64_t* answer, cudaStream_t stream) {
  close_kernel<<<1, 1, 0, stream>>>(state, answer);
  return cuda_status(cudaGetLastError(), "close the gate");
}

}  // namespace lockstep::cuda
