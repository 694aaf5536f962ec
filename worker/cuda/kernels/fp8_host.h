// The cast of fp8.h in the host's memory: the kernels' arithmetic, in one thread.
//
// Thread-safety: pure functions.
#pragma once

#include "worker/cuda/kernels/fp8.h"

namespace lockstep::cuda {

template <typename F>
void fp8_cast_on_host(const Fp8Cast& work) {
  uint32_t largest = 0;
  const uint64_t elements = uint64_t{work.rows} * work.columns;
  for (uint64_t i = 0; i < elements; ++i) largest = larger(largest, magnitude_bits(work.x[i]));
  *work.largest = largest;
  const float scale = fp8_scale<F>(largest);
  *work.inverse_scale = 1 / scale;
  const SerialTeam<kWarp> team;
  CastTile tile;
  for (uint64_t i = 0; i < cast_tiles(work); ++i) {
    cast_plain_tile<F>(team, work, scale, i, tile);
    cast_transposed_tile(team, work, i, tile);
  }
}

inline void fp8_cast_on_host(const Fp8Cast& work) {
  work.is_gradient ? fp8_cast_on_host<E5M2>(work) : fp8_cast_on_host<E4M3>(work);
}

}  // namespace lockstep::cuda
