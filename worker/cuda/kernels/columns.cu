// Kernels of sums down columns, and of bias + GELU, which walks the same tiles: a block a tile, a
// warp a row lane, a thread a group of columns.
#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/kernels/column_launch.h"
#include "worker/cuda/kernels/device_columns.cuh"
#include "worker/cuda/kernels/gelu_columns.h"
#include "worker/cuda/kernels/launch_shape.h"

namespace lockstep::cuda {
namespace {

// Neighbouring blocks walk the same rows.
template <bool Aligned, typename Source>
__global__ void __launch_bounds__(kTileThreads)
    column_tiles_kernel(Source source, uint32_t rows, uint32_t n, float* partials) {
  using T = typename Source::T;
  __shared__ RowLaneMemory<kGroup<T>> memory;
  const uint32_t row_lane = threadIdx.x / kWarp;
  const uint32_t groups = group_count<T>(n);
  const uint64_t chunks = column_chunks(rows);
  const uint64_t tiles = column_tiles<T>(rows, n);
  for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const auto [chunk, first_group] = tile_at<T>(tile, n);
    const uint32_t g = first_group + threadIdx.x % kWarp;
    typename Source::Columns columns = {};
    if (g < groups) {
      columns = source.template begin<Aligned>(g, n);
#pragma unroll 2
      for (uint64_t r = chunk * kColumnChunk + row_lane; r < chunk_end(chunk, rows); r += kRowLanes)
        source.template add<Aligned>(r, g, n, columns);
    }
    if constexpr (Source::kSums > 0) {
#pragma unroll
      for (uint32_t s = 0; s < Source::kSums; ++s) {
        add_row_lanes(columns.sums[s].of, memory);
        if (g < groups && row_lane == 0)
          store_floats<T, Aligned>(partials + (s * chunks + chunk) * n, g, n, columns.sums[s]);
      }
    }
  }
}

// A warp's lanes are columns, its number is the lane of chunks.
__global__ void __launch_bounds__(kWarp* kChunkLanes)
    sum_of_chunks_kernel(ChunkSums work, uint64_t chunks, uint32_t n) {
  __shared__ float lanes[kChunkLanes][kWarp];
  const uint32_t column = blockIdx.x * kWarp + threadIdx.x;
  const uint32_t lane = threadIdx.y;
  const float* partials = work.partials + blockIdx.y * chunks * n;
  float sum = 0;
  if (column < n) {
#pragma unroll 8
    for (uint64_t chunk = lane; chunk < chunks; chunk += kChunkLanes)
      sum += partials[chunk * n + column];
  }
  lanes[lane][threadIdx.x] = sum;
  __syncthreads();
  for (uint32_t half = kChunkLanes / 2; half > 0; half /= 2) {
    if (lane < half) lanes[lane][threadIdx.x] += lanes[lane + half][threadIdx.x];
    __syncthreads();
  }
  float* sums = blockIdx.y == 0 ? work.first : work.second;
  if (lane == 0 && column < n) sums[column] = lanes[0][threadIdx.x];
}

template <typename Source>
Status launch_tiles(const Source& source, bool is_aligned, uint32_t rows, uint32_t n,
                    float* partials, const char* what, cudaStream_t stream) {
  using T = typename Source::T;
  const uint32_t blocks = blocks_for(column_tiles<T>(rows, n), 1);
  if (is_aligned)
    column_tiles_kernel<true><<<blocks, kTileThreads, 0, stream>>>(source, rows, n, partials);
  else
    column_tiles_kernel<false><<<blocks, kTileThreads, 0, stream>>>(source, rows, n, partials);
  return cuda_status(cudaGetLastError(), what);
}

}  // namespace

Status launch_sum_of_chunks(const ChunkSums& work, uint32_t rows, uint32_t n, cudaStream_t stream) {
  const dim3 grid(blocks_for(n, kWarp), work.second == nullptr ? 1 : 2);
  sum_of_chunks_kernel<<<grid, dim3(kWarp, kChunkLanes), 0, stream>>>(work, column_chunks(rows), n);
  return cuda_status(cudaGetLastError(), "launch the sums of columns");
}

template <typename T>
Status launch_column_sums(const T* x, uint32_t rows, uint32_t n, float* partials, float* sums,
                          cudaStream_t stream) {
  if (rows == 0 || n == 0) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(launch_tiles(PlainColumns<T>{x}, are_rows_aligned<T>(n, x, partials),
                                        rows, n, partials, "launch the sums of columns", stream));
  return launch_sum_of_chunks({partials, sums}, rows, n, stream);
}

template <typename T>
Status launch_norm_partials(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                            float* partials, cudaStream_t stream) {
  return launch_tiles(NormColumns<T>{op}, are_rows_aligned<T>(n, op.dy, op.stream, partials), rows,
                      n, partials, "launch the gradients of layer normalisation's weights", stream);
}

template <typename T>
Status launch_bias_gelu(const BiasGelu<T>& op, uint32_t rows, uint32_t n, cudaStream_t stream) {
  if (rows == 0 || n == 0) return Status::ok();
  return launch_tiles(GeluColumns<T>{op}, are_rows_aligned<T>(n, op.x, op.bias, op.y), rows, n,
                      nullptr, "launch bias and GELU", stream);
}

template <typename T>
Status launch_bias_gelu_backward(const BiasGeluBackward<T>& op, uint32_t rows, uint32_t n,
                                 const BiasGradient& gradient, cudaStream_t stream) {
  if (rows == 0 || n == 0) return Status::ok();
  const bool is_aligned = are_rows_aligned<T>(n, op.dy, op.x, op.bias, op.dx, gradient.partials);
  LOCKSTEP_RETURN_IF_ERROR(launch_tiles(GeluBackwardColumns<T>{op}, is_aligned, rows, n,
                                        gradient.partials, "launch GELU's backward", stream));
  return launch_sum_of_chunks({gradient.partials, gradient.bias}, rows, n, stream);
}

#define LOCKSTEP_LAUNCH_COLUMNS(T)                                                                \
  template Status launch_column_sums(const T*, uint32_t, uint32_t, float*, float*, cudaStream_t); \
  template Status launch_norm_partials(const LayerNormBackward<T>&, uint32_t, uint32_t, float*,   \
                                       cudaStream_t);                                             \
  template Status launch_bias_gelu(const BiasGelu<T>&, uint32_t, uint32_t, cudaStream_t);         \
  template Status launch_bias_gelu_backward(const BiasGeluBackward<T>&, uint32_t, uint32_t,       \
                                            const BiasGradient&, cudaStream_t)
LOCKSTEP_LAUNCH_COLUMNS(float);
LOCKSTEP_LAUNCH_COLUMNS(Bf16);
#undef LOCKSTEP_LAUNCH_COLUMNS

}  // namespace lockstep::cuda
