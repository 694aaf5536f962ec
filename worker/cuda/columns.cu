// Kernels of sums down columns: a thread a column, a row of blocks a chunk of rows.
#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/column_launch.h"
#include "worker/cuda/column_sums.h"

namespace lockstep::cuda {
namespace {

constexpr uint32_t kThreads = 128;

__device__ uint32_t my_column() {
  return blockIdx.x * kThreads + threadIdx.x;
}

template <typename T>
__global__ void chunk_sums_kernel(const T* x, uint32_t rows, uint32_t n, float* partials) {
  const uint32_t column = my_column();
  const uint64_t chunk = blockIdx.y;
  if (column < n) partials[chunk * n + column] = chunk_sum(x, rows, n, chunk, column);
}

template <typename T>
__global__ void gain_gradient_kernel(LayerNormBackward<T> op, uint32_t rows, uint32_t n,
                                     float* partials) {
  const uint32_t column = my_column();
  const uint64_t chunk = blockIdx.y;
  if (column < n) partials[chunk * n + column] = chunk_gain_gradient(op, rows, n, chunk, column);
}

__global__ void sum_of_chunks_kernel(const float* partials, uint32_t chunks, uint32_t n,
                                     float* sums) {
  const uint32_t column = my_column();
  if (column < n) sums[column] = sum_of_chunks(partials, chunks, n, column);
}

// Of columns, and chunks of rows.
dim3 grid(uint32_t n, uint32_t rows) {
  return {(n + kThreads - 1) / kThreads, static_cast<uint32_t>(column_chunks(rows)), 1};
}

Status add_chunks(const float* partials, uint32_t rows, uint32_t n, float* sums,
                  cudaStream_t stream) {
  const auto chunks = static_cast<uint32_t>(column_chunks(rows));
  sum_of_chunks_kernel<<<grid(n, rows).x, kThreads, 0, stream>>>(partials, chunks, n, sums);
  return cuda_status(cudaGetLastError(), "launch the sums of columns");
}

}  // namespace

template <typename T>
Status launch_column_sums(const T* x, uint32_t rows, uint32_t n, float* partials, float* sums,
                          cudaStream_t stream) {
  if (rows == 0 || n == 0) return Status::ok();
  chunk_sums_kernel<<<grid(n, rows), kThreads, 0, stream>>>(x, rows, n, partials);
  return add_chunks(partials, rows, n, sums, stream);
}

template <typename T>
Status launch_gain_gradient(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                            const NormGradients& to, cudaStream_t stream) {
  float* second = to.partials + column_chunks(rows) * n;
  gain_gradient_kernel<<<grid(n, rows), kThreads, 0, stream>>>(op, rows, n, to.partials);
  LOCKSTEP_RETURN_IF_ERROR(add_chunks(to.partials, rows, n, to.gain, stream));
  return launch_column_sums(op.dy, rows, n, second, to.bias, stream);
}

#define LOCKSTEP_LAUNCH_COLUMNS(T)                                                                \
  template Status launch_column_sums(const T*, uint32_t, uint32_t, float*, float*, cudaStream_t); \
  template Status launch_gain_gradient(const LayerNormBackward<T>&, uint32_t, uint32_t,           \
                                       const NormGradients&, cudaStream_t)
LOCKSTEP_LAUNCH_COLUMNS(float);
LOCKSTEP_LAUNCH_COLUMNS(Bf16);
#undef LOCKSTEP_LAUNCH_COLUMNS

}  // namespace lockstep::cuda
