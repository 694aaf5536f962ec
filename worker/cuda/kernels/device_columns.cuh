// Adds the columns of a block's row lanes (column_sums.h). A block has kRowLanes warps; each is a
// row lane, and its threads hold columns.
//
// REQUIRES: all threads of the block call together.
#pragma once

#include <cstdint>

#include "worker/cuda/kernels/column_sums.h"

namespace lockstep::cuda {

inline constexpr uint32_t kTileThreads = kWarp * kRowLanes;

// Shared memory for sums of `Floats` floats a thread.
template <uint32_t Floats>
struct RowLaneMemory {
  float of[kRowLanes / 2][Floats][kWarp];
};

// Afterwards the first row lane holds the sums in `mine`.
template <uint32_t Floats>
__device__ __forceinline__ void add_row_lanes(float (&mine)[Floats],
                                              RowLaneMemory<Floats>& memory) {
  const uint32_t lane = threadIdx.x / kWarp;
  const uint32_t thread = threadIdx.x % kWarp;
#pragma unroll
  for (uint32_t half = kRowLanes / 2; half > 0; half /= 2) {
    if (lane >= half && lane < 2 * half) {
#pragma unroll
      for (uint32_t i = 0; i < Floats; ++i) memory.of[lane - half][i][thread] = mine[i];
    }
    __syncthreads();
    if (lane < half) {
#pragma unroll
      for (uint32_t i = 0; i < Floats; ++i) mine[i] += memory.of[lane][i][thread];
    }
    __syncthreads();  // before any thread writes the memory again
  }
}

}  // namespace lockstep::cuda
