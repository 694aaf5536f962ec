// Launches of column sums that other launches need (column_sums.h). Internal to the layers.
#pragma once

#include "worker/cuda/kernels/layer_launch.h"

namespace lockstep::cuda {

// The partials of the gradients of a layer normalisation's gain and bias: (2, chunks, n).
template <typename T>
Status launch_norm_partials(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                            float* partials, cudaStream_t stream);

// Partials (sums, chunks, n) of `rows` rows, and where their sums (n) go.
struct ChunkSums {
  const float* partials = nullptr;
  float* first = nullptr;
  float* second = nullptr;  // null: there is one sum
};
Status launch_sum_of_chunks(const ChunkSums& work, uint32_t rows, uint32_t n, cudaStream_t stream);

}  // namespace lockstep::cuda
