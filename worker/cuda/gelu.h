// Bias + GELU, GPT-2's tanh approximation of it (Hendrycks, Gimpel, Gaussian Error Linear Units,
// 2016): gelu(z) = z/2 (1 + tanh(k (z + 0.044715 z^3))), k = sqrt(2/pi).
//
// Thread-safety: pure functions.
#pragma once

#include <cmath>

#include "comm/base/host_device_macro.h"

namespace lockstep::cuda {

inline constexpr float kGeluScale = 0.7978845608028654f;
inline constexpr float kGeluCubic = 0.044715f;

LOCKSTEP_HOST_DEVICE float gelu_tanh(float z) {
  return std::tanh(kGeluScale * (z + kGeluCubic * z * z * z));
}

LOCKSTEP_HOST_DEVICE float gelu(float z) {
  return 0.5f * z * (1.0f + gelu_tanh(z));
}

LOCKSTEP_HOST_DEVICE float gelu_derivative(float z) {
  const float t = gelu_tanh(z);
  const float slope = kGeluScale * (1.0f + 3.0f * kGeluCubic * z * z);
  return 0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * slope;
}

}  // namespace lockstep::cuda
