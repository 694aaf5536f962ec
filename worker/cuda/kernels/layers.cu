// Kernels of images, dropout and the loss: thin loops over the functions of images.h, dropout.h and
// cross_entropy.h.
#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/kernels/device_team.cuh"
#include "worker/cuda/kernels/launch_shape.h"
#include "worker/cuda/kernels/layer_launch.h"

namespace lockstep::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kLossThreads = 512;  // two rows of a vocabulary on a multiprocessor
constexpr uint32_t kTable = 256;        // values of a byte
constexpr uint32_t kMostBlocks = 8192;  // more than any device runs at once

// One plane (sample, channel) a block.
__global__ void images_kernel(ImageWork work) {
  __shared__ float table[kTable];
  const uint32_t channel = blockIdx.x % work.channels;
  for (uint32_t i = threadIdx.x; i < kTable; i += kThreads)
    table[i] = work.tables[channel * kTable + i];
  __syncthreads();
  const uint64_t begin = uint64_t{blockIdx.x} * work.plane;
  const uint64_t other = mixed_plane(work, blockIdx.x);
  const float share = *work.share;
  for (uint32_t i = threadIdx.x; i < work.plane; i += kThreads) {
    const float own = table[work.bytes[begin + i]];
    work.out[begin + i] = share < 1 ? mixed(own, table[work.bytes[other + i]], share) : own;
  }
}

// A thread a pair, which shares a random number.
template <typename T>
__global__ void dropout_kernel(DropoutWork<T> work) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  const uint64_t pairs = (work.elements + 1) / 2;
  const uint64_t key = dropout_key(*work.stream.slot_key, work.stream.layer);
  for (uint64_t p = uint64_t{blockIdx.x} * kThreads + threadIdx.x; p < pairs; p += stride)
    dropout_elements(work, key, p);
}

// A block a row: a vocabulary is wide.
template <bool Aligned, typename T>
__global__ void __launch_bounds__(kLossThreads)
    cross_entropy_kernel(CrossEntropy<T> op, uint32_t rows) {
  using Team = BlockTeam<kLossThreads, sizeof(SoftmaxSums)>;
  __shared__ typename Team::Memory memory;
  const Team team(memory);
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    cross_entropy_row<Aligned>(
        team, op.logits + row * op.width.stride, op.gradient + row * op.width.stride, op.width,
        target_of(op.labels, row, rows, *op.values), loss_share(op.values->step_labels),
        op.losses + row, op.right == nullptr ? nullptr : op.right + row);
  }
}

}  // namespace

Status launch_images(const ImageWork& work, cudaStream_t stream) {
  if (work.samples == 0) return Status::ok();
  images_kernel<<<work.samples * work.channels, kThreads, 0, stream>>>(work);
  return cuda_status(cudaGetLastError(), "launch the images");
}

template <typename T>
Status launch_dropout(const DropoutWork<T>& work, cudaStream_t stream) {
  if (work.elements == 0) return Status::ok();
  dropout_kernel<<<blocks_for(work.elements, 2 * kThreads, kMostBlocks), kThreads, 0, stream>>>(
      work);
  return cuda_status(cudaGetLastError(), "launch dropout");
}

template <typename T>
Status launch_cross_entropy(const CrossEntropy<T>& op, uint32_t rows, cudaStream_t stream) {
  if (rows == 0) return Status::ok();
  const uint32_t blocks = blocks_for(rows, 1);
  if (are_rows_aligned<T>(op.width.stride, op.logits, op.gradient))
    cross_entropy_kernel<true><<<blocks, kLossThreads, 0, stream>>>(op, rows);
  else
    cross_entropy_kernel<false><<<blocks, kLossThreads, 0, stream>>>(op, rows);
  return cuda_status(cudaGetLastError(), "launch cross-entropy");
}

#define LOCKSTEP_LAUNCH_LAYERS(T)                                      \
  template Status launch_dropout(const DropoutWork<T>&, cudaStream_t); \
  template Status launch_cross_entropy(const CrossEntropy<T>&, uint32_t, cudaStream_t)
LOCKSTEP_LAUNCH_LAYERS(float);
LOCKSTEP_LAUNCH_LAYERS(Bf16);
#undef LOCKSTEP_LAUNCH_LAYERS

}  // namespace lockstep::cuda
