// Bias + GELU, GPT-2's tanh approximation of it (Hendrycks, Gimpel, Gaussian Error Linear Units,
// 2016): gelu(z) = z/2 (1 + tanh(u)), u = k (z + 0.044715 z^3), k = sqrt(2/pi). Since (1 +
// tanh(u)) / 2 = 1 / (1 + exp(-2u)), that is z times a sigmoid: one exponential and one reciprocal.
//
// T, the type of the activations, chooses the exponential (exponential.h).
//
// Thread-safety: pure functions.
#pragma once

#include <cfloat>
#include <cmath>

#include "comm/base/host_device_macro.h"
#include "worker/cuda/kernels/exponential.h"

namespace lockstep::cuda {

inline constexpr float kGeluScale = 0.7978845608028654f;
inline constexpr float kGeluCubic = 0.044715f;

// exp(-2u)
template <typename T>
LOCKSTEP_HOST_DEVICE float gelu_exponential(float z) {
  return exp_for<T>(-2.0f * kGeluScale * z * (1.0f + kGeluCubic * z * z));
}

template <typename T>
LOCKSTEP_HOST_DEVICE float gelu(float z) {
  return z * reciprocal_for<T>(1.0f + gelu_exponential<T>(z));
}

// s + z s (1 - s) 2 du/dz with the sigmoid s. 1 - s is exp(-2u) s, which cancels nothing.
template <typename T>
LOCKSTEP_HOST_DEVICE float gelu_derivative(float z) {
  const float e = gelu_exponential<T>(z);
  if (e > FLT_MAX) return 0;  // not infinity times 0
  const float s = reciprocal_for<T>(1.0f + e);
  const float slope = 2.0f * kGeluScale * (1.0f + 3.0f * kGeluCubic * z * z);
  return s + z * s * (e * s) * slope;
}

}  // namespace lockstep::cuda
