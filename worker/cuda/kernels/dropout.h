// Dropout from a counter-based stream. Whether an element is kept is a pure function of (key,
// position). So a redo, another rank, another process and the GPU all drop the same elements.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "comm/base/prng.h"
#include "worker/cuda/kernels/bf16.h"

namespace lockstep::cuda {

// 32 bits of a 64-bit number decide about one element. This is enough for a probability.
struct DropoutRule {
  uint32_t dropped_below = 0;
  float scale = 1;  // factor of a kept element: 1 / (1 - p)
};

// 0 <= p < 1.
inline DropoutRule dropout_rule(double p) {
  return {static_cast<uint32_t>(p * 0x1p32), static_cast<float>(1 / (1 - p))};
}

// The source of a layer's stream. A kernel reads the slot's key when it runs (slot_values.h).
struct DropoutStream {
  const uint64_t* slot_key = nullptr;
  uint64_t layer = 0;
};

// The key of one layer in one slot.
LOCKSTEP_HOST_DEVICE uint64_t dropout_key(uint64_t slot_key, uint64_t layer) {
  return stream_key({slot_key, layer});
}

// The factors of elements 2 * pair and 2 * pair + 1.
struct DropoutPair {
  float first = 0;
  float second = 0;
};

LOCKSTEP_HOST_DEVICE DropoutPair dropout_pair(const DropoutRule& rule, uint64_t key,
                                              uint64_t pair) {
  const uint64_t bits = stream_value(key, pair);
  return {static_cast<uint32_t>(bits) >= rule.dropped_below ? rule.scale : 0.0f,
          static_cast<uint32_t>(bits >> 32) >= rule.dropped_below ? rule.scale : 0.0f};
}

// y[i] = x[i] times its factor, for every i < elements.
template <typename T>
struct DropoutWork {
  const T* x = nullptr;
  T* y = nullptr;
  uint64_t elements = 0;
  DropoutStream stream = {};
  DropoutRule rule = {};
};

// Rounds the factor to T, as a mask of type T would.
template <typename T>
LOCKSTEP_HOST_DEVICE T dropped_or_scaled(T x, float factor) {
  return from_float<T>(to_float(x) * to_float(from_float<T>(factor)));
}

// `key`: dropout_key() of the work's stream.
template <typename T>
LOCKSTEP_HOST_DEVICE void dropout_elements(const DropoutWork<T>& work, uint64_t key,
                                           uint64_t pair) {
  const DropoutPair factors = dropout_pair(work.rule, key, pair);
  const uint64_t i = 2 * pair;
  work.y[i] = dropped_or_scaled(work.x[i], factors.first);
  if (i + 1 < work.elements) work.y[i + 1] = dropped_or_scaled(work.x[i + 1], factors.second);
}

}  // namespace lockstep::cuda
