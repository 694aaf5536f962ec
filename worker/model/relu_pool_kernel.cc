#include "worker/model/relu_pool_kernel.h"

#include <algorithm>

#include "comm/base/clones.h"

namespace lockstep {
namespace {

// One row of outputs from two rows of inputs.
LOCKSTEP_CLONES
void forward_row(const float* __restrict top, const float* __restrict bottom, int64_t n,
                 float* __restrict out, uint8_t* __restrict chosen) {
  for (int64_t i = 0; i < n; ++i) {
    const float a = top[2 * i];
    const float b = top[2 * i + 1];
    const float c = bottom[2 * i];
    const float d = bottom[2 * i + 1];
    const bool right_ab = b > a;
    const bool right_cd = d > c;
    const float ab = right_ab ? b : a;
    const float cd = right_cd ? d : c;
    const bool lower = cd > ab;
    const float largest = lower ? cd : ab;
    const uint8_t place = lower ? (right_cd ? 3 : 2) : (right_ab ? 1 : 0);
    const float sum = (a + b) + (c + d);
    const bool is_nan = (a != a) | (b != b) | (c != c) | (d != d);
    out[i] = is_nan ? sum : (largest > 0 ? largest : 0.0f);
    chosen[i] = largest > 0 ? place : kNoneChosen;
  }
}

LOCKSTEP_CLONES
void backward_row(const float* __restrict gradient, const uint8_t* __restrict chosen, int64_t n,
                  float* __restrict top, float* __restrict bottom) {
  for (int64_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    top[2 * i] = chosen[i] == 0 ? g : 0.0f;
    top[2 * i + 1] = chosen[i] == 1 ? g : 0.0f;
    bottom[2 * i] = chosen[i] == 2 ? g : 0.0f;
    bottom[2 * i + 1] = chosen[i] == 3 ? g : 0.0f;
  }
}

}  // namespace

void relu_pool_forward(const float* in, const PoolShape& shape, float* out, uint8_t* chosen) {
  const int64_t rows = shape.height / 2;
  const int64_t columns = shape.width / 2;
  for (int64_t p = 0; p < shape.planes; ++p) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* top = in + (p * shape.height + 2 * r) * shape.width;
      const int64_t at = (p * rows + r) * columns;
      forward_row(top, top + shape.width, columns, out + at, chosen + at);
    }
  }
}

void relu_pool_backward(const float* out_gradient, const uint8_t* chosen, const PoolShape& shape,
                        float* in_gradient) {
  const int64_t rows = shape.height / 2;
  const int64_t columns = shape.width / 2;
  for (int64_t p = 0; p < shape.planes; ++p) {
    float* plane = in_gradient + p * shape.height * shape.width;
    for (int64_t r = 0; r < rows; ++r) {
      float* top = plane + 2 * r * shape.width;
      float* bottom = top + shape.width;
      const int64_t at = (p * rows + r) * columns;
      backward_row(out_gradient + at, chosen + at, columns, top, bottom);
      if (shape.width % 2 != 0) top[shape.width - 1] = bottom[shape.width - 1] = 0;
    }
    std::fill(plane + 2 * rows * shape.width, plane + shape.height * shape.width, 0.0f);
  }
}

}  // namespace lockstep
