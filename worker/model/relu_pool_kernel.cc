#include "worker/model/relu_pool_kernel.h"

#include <algorithm>

#include "comm/base/target_clones.h"

namespace lockstep {
namespace {

// Rows are short (13 and 5 in the cnn), so several are taken together through a buffer that stays
// in the first-level cache: then all loops are long, and without branches that data decide.
constexpr int64_t kBufferFloats = 2048;

// How many rows of outputs, and how many columns of each, go through the buffer at once. More than
// one row only when rows are whole, so that a piece is contiguous in the output.
struct Piece {
  explicit Piece(int64_t all_columns)
      : columns(std::min(all_columns, kBufferFloats / 2)),
        rows(std::max<int64_t>(1, kBufferFloats / 2 / std::max<int64_t>(1, all_columns))) {}
  int64_t columns;
  int64_t rows;
};

// The larger of each column's two, the upper one on a tie, and its place among the four.
LOCKSTEP_CLONES
void vertical_max(const float* __restrict top, const float* __restrict bottom, int32_t n,
                  float* __restrict largest, int32_t* __restrict place) {
  for (int32_t i = 0; i < n; ++i) {
    const float a = top[i];
    const float b = bottom[i];
    const bool lower = (b > a) | (b != b);
    largest[i] = lower ? b : a;
    place[i] = (i & 1) + (lower ? 2 : 0);
  }
}

// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result): 32-bit indices, for the vectors
// The larger of two neighbours, the first in row-major order on a tie, cut off at zero.
LOCKSTEP_CLONES
void horizontal_max(const float* __restrict column, const int32_t* __restrict place, int32_t n,
                    float* __restrict out, uint8_t* __restrict chosen) {
  for (int32_t i = 0; i < n; ++i) {
    const float a = column[2 * i];
    const float b = column[2 * i + 1];
    const int32_t at_a = place[2 * i];
    const int32_t at_b = place[2 * i + 1];
    const bool right = (b > a) | (b != b) | ((b == a) & (at_b < at_a));
    const float largest = right ? b : a;
    const int32_t at = right ? at_b : at_a;
    out[i] = largest <= 0 ? 0.0f : largest;
    chosen[i] = static_cast<uint8_t>(largest <= 0 ? int32_t{kNoneChosen} : at);
  }
}

// Each output's gradient and place, twice: above both columns of its square.
LOCKSTEP_CLONES
void widen(const float* __restrict gradient, const uint8_t* __restrict chosen, int32_t n,
           float* __restrict wide, int32_t* __restrict place) {
  for (int32_t i = 0; i < n; ++i) {
    wide[2 * i] = gradient[i];
    wide[2 * i + 1] = gradient[i];
    place[2 * i] = chosen[i];
    place[2 * i + 1] = chosen[i];
  }
}
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)

LOCKSTEP_CLONES
void scatter(const float* __restrict wide, const int32_t* __restrict place, int32_t n,
             float* __restrict top, float* __restrict bottom) {
  for (int32_t i = 0; i < n; ++i) {
    const int32_t column = i & 1;
    top[i] = place[i] == column ? wide[i] : 0.0f;
    bottom[i] = place[i] == column + 2 ? wide[i] : 0.0f;
  }
}

// An odd last column and row have no output, so no gradient.
void clear_unpooled_edges(const PoolShape& shape, float* in_gradient) {
  for (int64_t p = 0; p < shape.planes; ++p) {
    float* plane = in_gradient + p * shape.height * shape.width;
    if (shape.width % 2 != 0) {
      for (int64_t r = 1; r <= shape.height; ++r) plane[r * shape.width - 1] = 0;
    }
    if (shape.height % 2 != 0)
      std::fill(plane + (shape.height - 1) * shape.width, plane + shape.height * shape.width, 0.0f);
  }
}

}  // namespace

void relu_pool_forward(const float* in, const PoolShape& shape, float* out, uint8_t* chosen) {
  alignas(64) float largest[kBufferFloats];
  alignas(64) int32_t place[kBufferFloats];
  const int64_t rows = shape.height / 2;
  const int64_t columns = shape.width / 2;
  const Piece piece(columns);
  for (int64_t first = 0; first < shape.planes * rows; first += piece.rows) {
    const int64_t n_rows = std::min(piece.rows, shape.planes * rows - first);
    for (int64_t c = 0; c < columns; c += piece.columns) {
      const int64_t n = std::min(piece.columns, columns - c);
      for (int64_t r = 0; r < n_rows; ++r) {
        const int64_t plane = (first + r) / rows;
        const int64_t row = (first + r) % rows;
        const float* top = in + (plane * shape.height + 2 * row) * shape.width + 2 * c;
        vertical_max(top, top + shape.width, static_cast<int32_t>(2 * n), largest + 2 * n * r,
                     place + 2 * n * r);
      }
      const int64_t at = first * columns + c;
      horizontal_max(largest, place, static_cast<int32_t>(n * n_rows), out + at, chosen + at);
    }
  }
}

void relu_pool_backward(const float* out_gradient, const uint8_t* chosen, const PoolShape& shape,
                        float* in_gradient) {
  alignas(64) float wide[kBufferFloats];
  alignas(64) int32_t place[kBufferFloats];
  const int64_t rows = shape.height / 2;
  const int64_t columns = shape.width / 2;
  const Piece piece(columns);
  for (int64_t first = 0; first < shape.planes * rows; first += piece.rows) {
    const int64_t n_rows = std::min(piece.rows, shape.planes * rows - first);
    for (int64_t c = 0; c < columns; c += piece.columns) {
      const int64_t n = std::min(piece.columns, columns - c);
      const int64_t at = first * columns + c;
      widen(out_gradient + at, chosen + at, static_cast<int32_t>(n * n_rows), wide, place);
      for (int64_t r = 0; r < n_rows; ++r) {
        const int64_t plane = (first + r) / rows;
        const int64_t row = (first + r) % rows;
        float* top = in_gradient + (plane * shape.height + 2 * row) * shape.width + 2 * c;
        scatter(wide + 2 * n * r, place + 2 * n * r, static_cast<int32_t>(2 * n), top,
                top + shape.width);
      }
    }
  }
  clear_unpooled_edges(shape, in_gradient);
}

}  // namespace lockstep
