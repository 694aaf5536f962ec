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

}  // namespace lockstep::nccl
