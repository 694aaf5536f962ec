// The arithmetic of gradient norms and clipping, for host and device alike. grad_norm.h says how
// blocks are cut and added.
//
// Thread-safety: pure functions.
#pragma once

#include <cmath>
#include <cstdint>

#include "comm/base/host_device_macro.h"

namespace lockstep {

inline constexpr uint64_t kNormBlock = 4096;  // elements
inline constexpr uint32_t kNormLanes = 16;

// Sum of squares of one lane in a block of `n` elements: the elements at lane, lane + 16, ...
LOCKSTEP_HOST_DEVICE float lane_squares(const float* values, uint64_t n, uint32_t lane) {
  float sum = 0;
  for (uint64_t i = lane; i < n; i += kNormLanes) sum += values[i] * values[i];
  return sum;
}

// True if no element of the lane is an infinity or NaN.
LOCKSTEP_HOST_DEVICE bool is_lane_finite(const float* values, uint64_t n, uint32_t lane) {
  bool is_finite = true;
  for (uint64_t i = lane; i < n; i += kNormLanes) is_finite = is_finite && std::isfinite(values[i]);
  return is_finite;
}

// The factor that makes gradients with this sum of squares at most `clip_norm` long, as in
// torch.nn.utils.clip_grad_norm_; 1 if they are short enough. A norm that is not finite gives 1,
// because overflow is judged elsewhere. REQUIRES: clip_norm > 0.
LOCKSTEP_HOST_DEVICE float clip_scale(double squares, double clip_norm) {
  if (!std::isfinite(squares)) return 1;
  constexpr double kTiny = 1e-6;  // PyTorch's guard against a division by zero
  const double scale = clip_norm / (std::sqrt(squares) + kTiny);
  return scale < 1 ? static_cast<float>(scale) : 1.0f;
}

}  // namespace lockstep
