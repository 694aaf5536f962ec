// The exponential and the reciprocal inside kernels for activations of type T.
//
// For floats they are the C library's exp and IEEE's division. For Bf16 the device takes its short
// instructions (ex2.approx, rcp.approx). The exponential is then off by (2 + 1.2 |x|) * 2^-24 of
// itself and the reciprocal by 2^-23. A result of Bf16 keeps 2^-9. So kernels wait for memory and
// not for arithmetic. The host has no such instructions, and computes as for floats.
//
// Thread-safety: pure functions.
#pragma once

#include <cmath>
#include <type_traits>

#include "comm/base/host_device_macro.h"

namespace lockstep::cuda {

template <typename T>
LOCKSTEP_HOST_DEVICE float exp_for(float x) {
#if defined(__CUDA_ARCH__)
  if constexpr (!std::is_same_v<T, float>) return __expf(x);
#endif
  return std::exp(x);
}

// x >= 1. Beyond 2^126 the result may be 0.
template <typename T>
LOCKSTEP_HOST_DEVICE float reciprocal_for(float x) {
#if defined(__CUDA_ARCH__)
  if constexpr (!std::is_same_v<T, float>) return __fdividef(1.0f, x);
#endif
  return 1.0f / x;
}

}  // namespace lockstep::cuda
