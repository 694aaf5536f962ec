// bfloat16 as 16 bits: the upper half of a float. Host and device round alike. The device's own
// instruction turns every NaN into 0x7fff, so the host does the same.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "comm/base/host_device_macro.h"

namespace lockstep::cuda {

struct Bf16 {
  uint16_t bits = 0;
};

LOCKSTEP_HOST_DEVICE uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

LOCKSTEP_HOST_DEVICE float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

LOCKSTEP_HOST_DEVICE float to_float(float x) {
  return x;
}

LOCKSTEP_HOST_DEVICE float to_float(Bf16 x) {
  return float_of_bits(static_cast<uint32_t>(x.bits) << 16);
}

// Rounds to the nearest, ties to even. NaN stays NaN; values that are too large become infinite.
template <typename T>
LOCKSTEP_HOST_DEVICE T from_float(float x);

template <>
LOCKSTEP_HOST_DEVICE float from_float<float>(float x) {
  return x;
}

template <>
LOCKSTEP_HOST_DEVICE Bf16 from_float<Bf16>(float x) {
#if defined(__CUDA_ARCH__)
  uint16_t rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  return {rounded};
#else
  const uint32_t bits = float_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

// Two rounded values in one word, `low` in its lower half.
LOCKSTEP_HOST_DEVICE uint32_t bf16_pair(float low, float high) {
#if defined(__CUDA_ARCH__)
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return from_float<Bf16>(low).bits | static_cast<uint32_t>(from_float<Bf16>(high).bits) << 16;
#endif
}

}  // namespace lockstep::cuda
