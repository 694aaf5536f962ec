// Kernels of layer normalisation: a warp a row, four rows a block. Backward's blocks also sum the
// gradients of gain and bias over their chunk of rows (column_sums.h).
#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/kernels/column_launch.h"
#include "worker/cuda/kernels/device_columns.cuh"
#include "worker/cuda/kernels/device_team.cuh"
#include "worker/cuda/kernels/launch_shape.h"
#include "worker/cuda/kernels/layer_norm_wide.h"

namespace lockstep::cuda {
namespace {

constexpr uint32_t kRows = kTileThreads / kWarp;  // of a block

// Elements of the widest row that a warp holds. Up to kWidest it can also hold the sums of columns.
constexpr uint32_t kNarrow = 768;
constexpr uint32_t kWidest = 1024;
constexpr uint32_t kWidestWithoutSums = 2048;

// Loads of single elements need registers for addresses.
template <typename T>
bool is_held(uint32_t n, bool is_aligned) {
  constexpr bool kIsFloat = kGroup<T> == kGroup<float>;
  return n <= (kIsFloat && !is_aligned ? kWidest : kWidestWithoutSums);
}

// Groups a lane holds of rows of up to `width` elements.
template <typename T>
constexpr uint32_t held_groups(uint32_t width) {
  return width / kGroup<T> / kWarp;
}
constexpr uint32_t kUnalignedEach = 8;  // the same for floats and Bf16

__device__ uint64_t my_row() {
  return uint64_t{blockIdx.x} * kRows + threadIdx.x / kWarp;
}
__device__ uint64_t rows_of_grid() {
  return uint64_t{gridDim.x} * kRows;
}

template <uint32_t Each, bool Aligned, typename T>
__global__ void __launch_bounds__(kTileThreads)
    layer_norm_kernel(LayerNormForward<T> op, uint32_t rows, uint32_t n) {
  for (uint64_t row = my_row(); row < rows; row += rows_of_grid())
    layer_norm_row<Each, Aligned>(WarpTeam{}, op, row, n);
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads)
    layer_norm_wide_kernel(LayerNormForward<T> op, uint32_t rows, uint32_t n) {
  for (uint64_t row = my_row(); row < rows; row += rows_of_grid())
    layer_norm_wide_row(WarpTeam{}, op, row, n);
}

// A block a chunk of rows, a warp a row lane.
template <uint32_t Each, bool Aligned, typename T>
__global__ void __launch_bounds__(kTileThreads)
    layer_norm_backward_sums_kernel(LayerNormBackward<T> op, uint32_t rows, uint32_t n,
                                    float* partials) {
  constexpr uint32_t kFloats = Each * kGroup<T>;
  __shared__ RowLaneMemory<kFloats> memory;
  const WarpTeam team;
  const uint32_t row_lane = threadIdx.x / kWarp;
  const uint64_t chunks = column_chunks(rows);
  for (uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    float gain[kFloats] = {};
    float bias[kFloats] = {};
    for (uint64_t row = chunk * kColumnChunk + row_lane; row < chunk_end(chunk, rows);
         row += kRowLanes) {
      layer_norm_backward_row<Each, Aligned>(
          team, op, row, n, [&](uint32_t k, uint32_t j, float dy, float normal) {
            NormColumns<T>::add_term(gain[k * kGroup<T> + j], bias[k * kGroup<T> + j], dy, normal);
          });
    }
    const auto store = [&](float(&sums)[kFloats], float* to) {
      add_row_lanes(sums, memory);
      if (row_lane != 0) return;
      team.held_loop<Each>(group_count<T>(n), [&](uint32_t k, uint32_t g) {
        GroupFloats<T> floats;
#pragma unroll
        for (uint32_t j = 0; j < kGroup<T>; ++j) floats.of[j] = sums[k * kGroup<T> + j];
        store_floats<T, Aligned>(to, g, n, floats);
      });
    };
    store(gain, partials + chunk * n);
    store(bias, partials + (chunks + chunk) * n);
  }
}

template <uint32_t Each, bool Aligned, typename T>
__global__ void __launch_bounds__(kTileThreads)
    layer_norm_backward_kernel(LayerNormBackward<T> op, uint32_t rows, uint32_t n) {
  for (uint64_t row = my_row(); row < rows; row += rows_of_grid())
    layer_norm_backward_row<Each, Aligned>(WarpTeam{}, op, row, n,
                                           [](uint32_t, uint32_t, float, float) {});
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads)
    layer_norm_backward_wide_kernel(LayerNormBackward<T> op, uint32_t rows, uint32_t n) {
  for (uint64_t row = my_row(); row < rows; row += rows_of_grid())
    layer_norm_backward_wide_row(WarpTeam{}, op, row, n);
}

template <uint32_t Each, bool Aligned, typename T>
Status start_norm(const LayerNormForward<T>& op, uint32_t rows, uint32_t n, cudaStream_t stream) {
  layer_norm_kernel<Each, Aligned>
      <<<blocks_for(rows, kRows), kTileThreads, 0, stream>>>(op, rows, n);
  return cuda_status(cudaGetLastError(), "launch layer normalisation");
}

template <uint32_t Each, bool Aligned, typename T>
Status start_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n, float* partials,
                      cudaStream_t stream) {
  layer_norm_backward_sums_kernel<Each, Aligned>
      <<<blocks_for(column_chunks(rows), 1), kTileThreads, 0, stream>>>(op, rows, n, partials);
  return cuda_status(cudaGetLastError(), "launch layer normalisation's backward");
}

// For rows whose sums a warp cannot hold as well.
template <typename T>
Status start_wide_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                           bool is_aligned, float* partials, cudaStream_t stream) {
  constexpr uint32_t kEach = held_groups<T>(kWidestWithoutSums);
  // First the launch that reads dy, which dx may overwrite.
  LOCKSTEP_RETURN_IF_ERROR(launch_norm_partials(op, rows, n, partials, stream));
  const uint32_t blocks = blocks_for(rows, kRows);
  if (!is_held<T>(n, is_aligned))
    layer_norm_backward_wide_kernel<<<blocks, kTileThreads, 0, stream>>>(op, rows, n);
  else if (is_aligned)
    layer_norm_backward_kernel<kEach, true><<<blocks, kTileThreads, 0, stream>>>(op, rows, n);
  else
    layer_norm_backward_kernel<kUnalignedEach, false>
        <<<blocks, kTileThreads, 0, stream>>>(op, rows, n);
  return cuda_status(cudaGetLastError(), "launch layer normalisation's backward");
}

template <typename T>
Status start_rows_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                           float* partials, cudaStream_t stream) {
  const bool is_aligned =
      are_rows_aligned<T>(n, op.dy, op.d_stream, op.stream, op.gain, op.dx, partials);
  if (n > kWidest) return start_wide_backward(op, rows, n, is_aligned, partials, stream);
  if (!is_aligned)
    return start_backward<held_groups<T>(kWidest), false>(op, rows, n, partials, stream);
  if (n <= kNarrow)
    return start_backward<held_groups<T>(kNarrow), true>(op, rows, n, partials, stream);
  return start_backward<held_groups<T>(kWidest), true>(op, rows, n, partials, stream);
}

}  // namespace

template <typename T>
Status launch_layer_norm(const LayerNormForward<T>& op, uint32_t rows, uint32_t n,
                         cudaStream_t stream) {
  if (rows == 0) return Status::ok();
  const bool is_aligned =
      are_rows_aligned<T>(n, op.x, op.branch, op.gain, op.bias, op.stream, op.y);
  if (!is_held<T>(n, is_aligned)) {
    layer_norm_wide_kernel<<<blocks_for(rows, kRows), kTileThreads, 0, stream>>>(op, rows, n);
    return cuda_status(cudaGetLastError(), "launch layer normalisation");
  }
  if (!is_aligned) return start_norm<kUnalignedEach, false>(op, rows, n, stream);
  if (n <= kNarrow) return start_norm<held_groups<T>(kNarrow), true>(op, rows, n, stream);
  if (n <= kWidest) return start_norm<held_groups<T>(kWidest), true>(op, rows, n, stream);
  return start_norm<held_groups<T>(kWidestWithoutSums), true>(op, rows, n, stream);
}

template <typename T>
Status launch_layer_norm_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                                  const NormGradients& gradients, cudaStream_t stream) {
  if (rows == 0) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(start_rows_backward(op, rows, n, gradients.partials, stream));
  return launch_sum_of_chunks({gradients.partials, gradients.gain, gradients.bias}, rows, n,
                              stream);
}

#define LOCKSTEP_LAUNCH_NORMS(T)                                                                   \
  template Status launch_layer_norm(const LayerNormForward<T>&, uint32_t, uint32_t, cudaStream_t); \
  template Status launch_layer_norm_backward(const LayerNormBackward<T>&, uint32_t, uint32_t,      \
                                             const NormGradients&, cudaStream_t)
LOCKSTEP_LAUNCH_NORMS(float);
LOCKSTEP_LAUNCH_NORMS(Bf16);
#undef LOCKSTEP_LAUNCH_NORMS

}  // namespace lockstep::cuda
