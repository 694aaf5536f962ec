// ReLU and 2x2 max-pooling in one pass, forward and backward, on plain floats.
//
// LibTorch takes two passes each way and eight bytes of index per output, which is a third of the
// small cnn's time. The results here are the same to the bit: among equal values the first counts,
// and NaN stays NaN.
//
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>

namespace lockstep {

// `planes` planes of (height, width), row-major. A last odd row or column is ignored.
struct PoolShape {
  int64_t planes = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// out: planes of (height / 2, width / 2). chosen: same shape as out. It says which of the four
// values, row-major, was the largest, or kNoneChosen if none is above zero.
inline constexpr uint8_t kNoneChosen = 4;
void relu_pool_forward(const float* in, const PoolShape& shape, float* out, uint8_t* chosen);

// Writes all of in_gradient (planes of (height, width)).
void relu_pool_backward(const float* out_gradient, const uint8_t* chosen, const PoolShape& shape,
                        float* in_gradient);

}  // namespace lockstep
