// Sums down the columns of a matrix (rows, columns): gradients of gains and biases.
//
// Rows are cut into chunks of kColumnChunk. Row lane l of a chunk adds rows l, l + kRowLanes, ...
// of the chunk in order. The row lanes are added in a fixed tree (upper half onto lower half). Then
// lane l adds the sums of chunks l, l + kChunkLanes, ... in order, and the lanes are added in a
// tree of the same kind. So the bits depend only on the number of rows. `partials` is (sums,
// chunks, columns) floats.
//
// A TILE is a chunk of rows and a warp of groups (groups.h) of columns. A SOURCE gives the terms of
// a tile's sums, and may write results on the way:
//
//   kSums                      sums for each column; may be 0
//   Columns                    what a row lane keeps for one group of columns, with
//                              GroupFloats<T> sums[kSums]
//   begin<Aligned>(g, n)       Columns at zero
//   add<Aligned>(row, g, n, columns)
//
// Thread-safety: pure functions; groups and chunks are independent.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "worker/cuda/kernels/groups.h"
#include "worker/cuda/kernels/layer_norm.h"
#include "worker/cuda/kernels/team.h"

namespace lockstep::cuda {

inline constexpr uint32_t kColumnChunk = 32;  // rows
inline constexpr uint32_t kRowLanes = 4;
inline constexpr uint32_t kChunkLanes = 32;

LOCKSTEP_HOST_DEVICE uint64_t column_chunks(uint64_t rows) {
  return (rows + kColumnChunk - 1) / kColumnChunk;
}

LOCKSTEP_HOST_DEVICE uint64_t chunk_end(uint64_t chunk, uint64_t rows) {
  const uint64_t end = (chunk + 1) * kColumnChunk;
  return end < rows ? end : rows;
}

// Tiles are numbered along a chunk first. Their number may exceed CUDA's limit in y of a grid.
struct ColumnTile {
  uint64_t chunk = 0;
  uint32_t first_group = 0;
};

template <typename T>
LOCKSTEP_HOST_DEVICE uint32_t tiles_across(uint32_t columns) {
  return (group_count<T>(columns) + kWarp - 1) / kWarp;
}

template <typename T>
LOCKSTEP_HOST_DEVICE uint64_t column_tiles(uint64_t rows, uint32_t columns) {
  return column_chunks(rows) * tiles_across<T>(columns);
}

template <typename T>
LOCKSTEP_HOST_DEVICE ColumnTile tile_at(uint64_t tile, uint32_t columns) {
  const uint32_t across = tiles_across<T>(columns);
  return {tile / across, static_cast<uint32_t>(tile % across) * kWarp};
}

// The sums of x.
template <typename Value>
struct PlainColumns {
  using T = Value;
  static constexpr uint32_t kSums = 1;
  struct Columns {
    GroupFloats<T> sums[kSums];
  };

  const T* x = nullptr;

  template <bool Aligned>
  LOCKSTEP_HOST_DEVICE Columns begin(uint32_t, uint32_t) const {
    return {};
  }
  template <bool Aligned>
  LOCKSTEP_HOST_DEVICE void add(uint64_t row, uint32_t g, uint32_t n, Columns& columns) const {
    const Group<T> x_row = load_group<Aligned>(x + row * n, g, n);
    for (uint32_t j = 0; j < kGroup<T>; ++j) columns.sums[0].of[j] += element(x_row, j);
  }
};

// The gradients of a layer normalisation's gain (dy times the normalised value) and bias (dy).
template <typename Value>
struct NormColumns {
  using T = Value;
  static constexpr uint32_t kSums = 2;
  struct Columns {
    GroupFloats<T> sums[kSums];
  };

  LayerNormBackward<T> op;

  template <bool Aligned>
  LOCKSTEP_HOST_DEVICE Columns begin(uint32_t, uint32_t) const {
    return {};
  }
  template <bool Aligned>
  LOCKSTEP_HOST_DEVICE void add(uint64_t row, uint32_t g, uint32_t n, Columns& columns) const {
    const Group<T> dy = load_group<Aligned>(op.dy + row * n, g, n);
    const Group<T> stream = load_group<Aligned>(op.stream + row * n, g, n);
    const float mean = op.mean[row];
    const float rstd = op.rstd[row];
    for (uint32_t j = 0; j < kGroup<T>; ++j)
      add_term(columns.sums[0].of[j], columns.sums[1].of[j], element(dy, j),
               (element(stream, j) - mean) * rstd);
  }
  LOCKSTEP_HOST_DEVICE static void add_term(float& gain, float& bias, float dy, float normal) {
    gain += dy * normal;
    bias += dy;
  }
};

// The sum of partials of one column, in the order of this file, on the CPU.
inline float sum_of_chunks(const float* partials, uint64_t chunks, uint32_t columns,
                           uint32_t column) {
  const SerialTeam<kChunkLanes> lanes;
  return lanes.sum(static_cast<uint32_t>(chunks),
                   [&](uint32_t chunk) { return partials[uint64_t{chunk} * columns + column]; });
}

// The sums of one tile's group g, into partials (kSums, chunks, n), on the CPU.
template <bool Aligned, typename Source>
void sum_tile_group(const Source& source, uint64_t rows, uint32_t n, uint64_t chunk, uint32_t g,
                    float* partials) {
  using T = typename Source::T;
  typename Source::Columns lanes[kRowLanes];
  for (uint32_t lane = 0; lane < kRowLanes; ++lane) {
    lanes[lane] = source.template begin<Aligned>(g, n);
    for (uint64_t r = chunk * kColumnChunk + lane; r < chunk_end(chunk, rows); r += kRowLanes)
      source.template add<Aligned>(r, g, n, lanes[lane]);
  }
  if constexpr (Source::kSums > 0) {
    for (uint32_t s = 0; s < Source::kSums; ++s) {
      for (uint32_t half = kRowLanes / 2; half > 0; half /= 2) {
        for (uint32_t lane = 0; lane < half; ++lane) {
          for (uint32_t j = 0; j < kGroup<T>; ++j)
            lanes[lane].sums[s].of[j] += lanes[lane + half].sums[s].of[j];
        }
      }
      float* row = partials + (s * column_chunks(rows) + chunk) * n;
      store_floats<T, Aligned>(row, g, n, lanes[0].sums[s]);
    }
  }
}

}  // namespace lockstep::cuda
