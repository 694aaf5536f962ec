// Rows in groups of 16 bytes: 8 Bf16 or 4 floats, which one thread loads and stores at once.
//
// A group keeps its elements as they lie in memory, so a row of Bf16 takes half the registers that
// its floats would take. The last group of a row may be short. Its missing elements are zeros.
//
// `Aligned` says that the beginning of every group lies at a multiple of 16 bytes, and that the
// memory of the last group is whole. Loads and stores are then one instruction each. Otherwise they
// go element by element. Either way gives the same values, and so the same bits of every sum.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/base/host_device_macro.h"
#include "worker/cuda/kernels/bf16.h"

namespace lockstep::cuda {

inline constexpr uint32_t kGroupBytes = 16;

template <typename T>
inline constexpr uint32_t kGroup = kGroupBytes / sizeof(T);  // elements

template <typename T>
LOCKSTEP_HOST_DEVICE uint32_t group_count(uint32_t n) {
  return n / kGroup<T> + (n % kGroup<T> != 0 ? 1 : 0);
}

LOCKSTEP_HOST_DEVICE bool is_group_aligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % kGroupBytes == 0;
}

// True if all rows of `stride` elements from these places begin at groups. Null is no place.
template <typename T, typename... Places>
bool are_rows_aligned(uint32_t stride, const Places*... places) {
  return stride % kGroup<T> == 0 && (is_group_aligned(places) && ...);
}

template <typename T>
struct alignas(kGroupBytes) Group {
  uint32_t words[4] = {};
};

LOCKSTEP_HOST_DEVICE float element(const Group<float>& group, uint32_t j) {
  return float_of_bits(group.words[j]);
}

LOCKSTEP_HOST_DEVICE float element(const Group<Bf16>& group, uint32_t j) {
  const uint32_t word = group.words[j / 2];
  return float_of_bits(j % 2 == 0 ? word << 16 : word & 0xffff0000u);
}

// The group of these kGroup<T> values, rounded to T.
template <typename T>
LOCKSTEP_HOST_DEVICE Group<T> group_of(const float* values);

template <>
LOCKSTEP_HOST_DEVICE Group<float> group_of<float>(const float* values) {
  Group<float> group;
  for (uint32_t j = 0; j < 4; ++j) group.words[j] = float_bits(values[j]);
  return group;
}

template <>
LOCKSTEP_HOST_DEVICE Group<Bf16> group_of<Bf16>(const float* values) {
  Group<Bf16> group;
  for (uint32_t j = 0; j < 4; ++j) group.words[j] = bf16_pair(values[2 * j], values[2 * j + 1]);
  return group;
}

// Calls body(j, i) for the elements i = first + j of a group that are below n. With `Aligned` rows
// end with a whole group.
template <typename T, bool Aligned, typename Body>
LOCKSTEP_HOST_DEVICE void each_element(uint32_t g, uint32_t n, const Body& body) {
  for (uint32_t j = 0; j < kGroup<T>; ++j) {
    const uint32_t i = g * kGroup<T> + j;
    if (Aligned || i < n) body(j, i);
  }
}

// Group g of a row of n elements.
template <bool Aligned, typename T>
LOCKSTEP_HOST_DEVICE Group<T> load_group(const T* row, uint32_t g, uint32_t n) {
  if constexpr (Aligned) {
    return *reinterpret_cast<const Group<T>*>(row + uint64_t{g} * kGroup<T>);
  } else {
    float values[kGroup<T>] = {};
    each_element<T, false>(g, n, [&](uint32_t j, uint32_t i) { values[j] = to_float(row[i]); });
    return group_of<T>(values);
  }
}

template <bool Aligned, typename T>
LOCKSTEP_HOST_DEVICE void store_group(T* row, uint32_t g, uint32_t n, const Group<T>& group) {
  if constexpr (Aligned) {
    *reinterpret_cast<Group<T>*>(row + uint64_t{g} * kGroup<T>) = group;
  } else {
    each_element<T, false>(
        g, n, [&](uint32_t j, uint32_t i) { row[i] = from_float<T>(element(group, j)); });
  }
}

// kGroup<T> floats that belong to group g of a row of T: weights and sums.
template <typename T>
struct GroupFloats {
  float of[kGroup<T>] = {};
};

template <typename T, bool Aligned>
LOCKSTEP_HOST_DEVICE GroupFloats<T> load_floats(const float* row, uint32_t g, uint32_t n) {
  GroupFloats<T> floats;
  if constexpr (Aligned) {
    for (uint32_t k = 0; k < kGroup<T> / 4; ++k) {
      const Group<float> four = load_group<true>(row, g * (kGroup<T> / 4) + k, n);
      for (uint32_t j = 0; j < 4; ++j) floats.of[4 * k + j] = element(four, j);
    }
  } else {
    each_element<T, false>(g, n, [&](uint32_t j, uint32_t i) { floats.of[j] = row[i]; });
  }
  return floats;
}

template <typename T, bool Aligned>
LOCKSTEP_HOST_DEVICE void store_floats(float* row, uint32_t g, uint32_t n,
                                       const GroupFloats<T>& floats) {
  if constexpr (Aligned) {
    for (uint32_t k = 0; k < kGroup<T> / 4; ++k)
      store_group<true>(row, g * (kGroup<T> / 4) + k, n, group_of<float>(floats.of + 4 * k));
  } else {
    each_element<T, false>(g, n, [&](uint32_t j, uint32_t i) { row[i] = floats.of[j]; });
  }
}

}  // namespace lockstep::cuda
