// Kernels of layer_launch.h that work on rows or elements: thin loops over the functions of
// layer_norm.h, gelu.h and cross_entropy.h.
#include <algorithm>

#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/column_launch.h"
#include "worker/cuda/device_team.cuh"
#include "worker/cuda/gelu.h"
#include "worker/cuda/layer_launch.h"

namespace lockstep::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kTable = 256;        // values of a byte
constexpr uint32_t kMostBlocks = 8192;  // more than any device runs at once

uint32_t blocks_for(uint64_t threads) {
  return static_cast<uint32_t>(
      std::min<uint64_t>((threads + kThreads - 1) / kThreads, kMostBlocks));
}

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

// A warp a row.
template <typename T>
__global__ void layer_norm_kernel(LayerNormForward<T> op, uint32_t rows, uint32_t n) {
  const uint32_t row = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
  if (row < rows) layer_norm_row(WarpTeam{}, op, row, n);
}

template <typename T>
__global__ void layer_norm_backward_kernel(LayerNormBackward<T> op, uint32_t rows, uint32_t n) {
  const uint32_t row = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
  if (row < rows) layer_norm_backward_row(WarpTeam{}, op, row, n);
}

template <typename T>
__global__ void bias_gelu_kernel(BiasGelu<T> op, uint64_t elements, uint32_t n) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < elements; i += stride)
    op.y[i] = from_float<T>(gelu(to_float(op.x[i]) + op.bias[i % n]));
}

template <typename T>
__global__ void bias_gelu_backward_kernel(BiasGeluBackward<T> op, uint64_t elements, uint32_t n) {
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < elements; i += stride) {
    const float slope = gelu_derivative(to_float(op.x[i]) + op.bias[i % n]);
    op.dx[i] = from_float<T>(to_float(op.dy[i]) * slope);
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
template <typename T>
__global__ void cross_entropy_kernel(CrossEntropy<T> op) {
  __shared__ float lanes[kThreads];
  const BlockTeam<kThreads> team(lanes);
  const uint64_t row = blockIdx.x;
  const T* logits = op.logits + row * op.width.stride;
  const RowTarget target = target_of(op.labels, row, gridDim.x, *op.values);
  if (op.right != nullptr) {
    const bool is_right = is_right_row(team, logits, op.width, target.likelier());
    team.once([&] { op.right[row] = is_right ? 1 : 0; });
  }
  cross_entropy_row(team, logits, op.gradient + row * op.width.stride, op.width, target,
                    loss_share(op.values->step_labels), op.losses + row);
}

}  // namespace

Status launch_images(const ImageWork& work, cudaStream_t stream) {
  if (work.samples == 0) return Status::ok();
  images_kernel<<<work.samples * work.channels, kThreads, 0, stream>>>(work);
  return cuda_status(cudaGetLastError(), "launch the images");
}

template <typename T>
Status launch_layer_norm(const LayerNormForward<T>& op, uint32_t rows, uint32_t n,
                         cudaStream_t stream) {
  if (rows == 0) return Status::ok();
  const uint32_t blocks = (rows + kThreads / kWarp - 1) / (kThreads / kWarp);
  layer_norm_kernel<<<blocks, kThreads, 0, stream>>>(op, rows, n);
  return cuda_status(cudaGetLastError(), "launch layer normalisation");
}

template <typename T>
Status launch_layer_norm_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                                  const NormGradients& gradients, cudaStream_t stream) {
  if (rows == 0) return Status::ok();
  // First what reads dy, which dx may overwrite.
  LOCKSTEP_RETURN_IF_ERROR(launch_gain_gradient(op, rows, n, gradients, stream));
  const uint32_t blocks = (rows + kThreads / kWarp - 1) / (kThreads / kWarp);
  layer_norm_backward_kernel<<<blocks, kThreads, 0, stream>>>(op, rows, n);
  return cuda_status(cudaGetLastError(), "launch layer normalisation's backward");
}

template <typename T>
Status launch_bias_gelu(const BiasGelu<T>& op, uint32_t rows, uint32_t n, cudaStream_t stream) {
  const uint64_t elements = uint64_t{rows} * n;
  if (elements == 0) return Status::ok();
  bias_gelu_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(op, elements, n);
  return cuda_status(cudaGetLastError(), "launch bias and GELU");
}

template <typename T>
Status launch_bias_gelu_backward(const BiasGeluBackward<T>& op, uint32_t rows, uint32_t n,
                                 const BiasGradient& gradient, cudaStream_t stream) {
  const uint64_t elements = uint64_t{rows} * n;
  if (elements == 0) return Status::ok();
  bias_gelu_backward_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(op, elements, n);
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaGetLastError(), "launch GELU's backward"));
  return launch_column_sums(op.dx, rows, n, gradient.partials, gradient.bias, stream);
}

template <typename T>
Status launch_dropout(const DropoutWork<T>& work, cudaStream_t stream) {
  if (work.elements == 0) return Status::ok();
  dropout_kernel<<<blocks_for((work.elements + 1) / 2), kThreads, 0, stream>>>(work);
  return cuda_status(cudaGetLastError(), "launch dropout");
}

template <typename T>
Status launch_cross_entropy(const CrossEntropy<T>& op, uint32_t rows, cudaStream_t stream) {
  if (rows == 0) return Status::ok();
  cross_entropy_kernel<<<rows, kThreads, 0, stream>>>(op);
  return cuda_status(cudaGetLastError(), "launch cross-entropy");
}

#define LOCKSTEP_LAUNCH_LAYERS(T)                                                                  \
  template Status launch_layer_norm(const LayerNormForward<T>&, uint32_t, uint32_t, cudaStream_t); \
  template Status launch_layer_norm_backward(const LayerNormBackward<T>&, uint32_t, uint32_t,      \
                                             const NormGradients&, cudaStream_t);                  \
  template Status launch_bias_gelu(const BiasGelu<T>&, uint32_t, uint32_t, cudaStream_t);          \
  template Status launch_bias_gelu_backward(const BiasGeluBackward<T>&, uint32_t, uint32_t,        \
                                            const BiasGradient&, cudaStream_t);                    \
  template Status launch_dropout(const DropoutWork<T>&, cudaStream_t);                             \
  template Status launch_cross_entropy(const CrossEntropy<T>&, uint32_t, cudaStream_t)
LOCKSTEP_LAUNCH_LAYERS(float);
LOCKSTEP_LAUNCH_LAYERS(Bf16);
#undef LOCKSTEP_LAUNCH_LAYERS

}  // namespace lockstep::cuda
