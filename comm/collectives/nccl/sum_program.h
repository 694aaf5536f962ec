// A sum along the tree in the form that a kernel takes: by value, for one element at a time.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "comm/base/host_device_macro.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"

namespace lockstep::nccl {

// The stack of a sum over 65,536 slots (limits::kSlots) is 17 deep.
inline constexpr uint32_t kSumDepth = 20;

struct DeviceSum {
  const float* leaves[limits::kDeviceLeaves];
  int16_t ops[2 * limits::kDeviceLeaves];  // as SumProgram's
  uint32_t op_count = 0;
  uint32_t balanced = 0;  // 2, 4 or 8: the sum is sum_balanced() of so many leaves; else 0
  uint64_t elements = 0;
  float* out = nullptr;
};

// kConfig if more partials meet on one GPU than a kernel takes.
Status make_device_sum(std::span<const int32_t> ops, std::span<const float* const> leaves,
                       float* out, uint64_t elements, DeviceSum* sum);

// Element `i` of the sum, with the additions of evaluate_sum() in its order.
LOCKSTEP_HOST_DEVICE float sum_element(const DeviceSum& sum, uint64_t i) {
  float stack[kSumDepth];
  uint32_t size = 0;
  for (uint32_t k = 0; k < sum.op_count; ++k) {
    const int16_t op = sum.ops[k];
    if (op >= 0) {
      stack[size++] = sum.leaves[op][i];
    } else {
      --size;
      stack[size - 1] += stack[size];
    }
  }
  return size == 0 ? 0.0f : stack[0];
}

// The leaves of a program that adds 2, 4 or 8 leaves in their order by a balanced tree: the program
// of so many partials that are powers of two alike. Else 0.
uint32_t balanced_leaves(std::span<const int32_t> ops);

// The sum of `Leaves` values by a balanced tree: sum_element()'s additions for such a program, with
// the values in registers instead of a stack. Overwrites `values`.
template <uint32_t Leaves>
LOCKSTEP_HOST_DEVICE float sum_balanced(float (&values)[Leaves]) {
  for (uint32_t width = 1; width < Leaves; width *= 2) {
    for (uint32_t i = 0; i < Leaves; i += 2 * width) values[i] += values[i + width];
  }
  return values[0];
}

}  // namespace lockstep::nccl
