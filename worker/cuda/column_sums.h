// Sums down the columns of a matrix (rows, columns): gradients of gains and biases.
//
// Rows are cut into chunks of kColumnChunk. The rows of a chunk are added in order, then the chunks
// in order. So the bits depend only on the number of rows. `partials` is (chunks, columns) floats.
//
// Thread-safety: pure functions; columns and chunks are independent.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "worker/cuda/bf16.h"
#include "worker/cuda/layer_norm.h"

namespace lockstep::cuda {

inline constexpr uint32_t kColumnChunk = 128;  // rows

LOCKSTEP_HOST_DEVICE uint64_t column_chunks(uint64_t rows) {
  return (rows + kColumnChunk - 1) / kColumnChunk;
}

LOCKSTEP_HOST_DEVICE uint64_t chunk_end(uint64_t chunk, uint64_t rows) {
  const uint64_t end = (chunk + 1) * kColumnChunk;
  return end < rows ? end : rows;
}

template <typename T>
LOCKSTEP_HOST_DEVICE float chunk_sum(const T* x, uint64_t rows, uint32_t columns, uint64_t chunk,
                                     uint32_t column) {
  float sum = 0;
  for (uint64_t r = chunk * kColumnChunk; r < chunk_end(chunk, rows); ++r)
    sum += to_float(x[r * columns + column]);
  return sum;
}

// The gradient of a layer normalisation's gain: dy times the normalised value. chunk_sum(dy) is the
// gradient of its bias.
template <typename T>
LOCKSTEP_HOST_DEVICE float chunk_gain_gradient(const LayerNormBackward<T>& op, uint64_t rows,
                                               uint32_t columns, uint64_t chunk, uint32_t column) {
  float sum = 0;
  for (uint64_t r = chunk * kColumnChunk; r < chunk_end(chunk, rows); ++r) {
    const uint64_t at = r * columns + column;
    sum += to_float(op.dy[at]) * ((to_float(op.stream[at]) - op.mean[r]) * op.rstd[r]);
  }
  return sum;
}

LOCKSTEP_HOST_DEVICE float sum_of_chunks(const float* partials, uint64_t chunks, uint32_t columns,
                                         uint32_t column) {
  float sum = 0;
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk * columns + column];
  return sum;
}

}  // namespace lockstep::cuda
