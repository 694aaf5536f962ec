// Numbers of a tensor as floats, in which the gradient buffer holds gradients of other types.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

enum class Into : uint8_t { kReplace, kAdd };

// Writes `elements` numbers of kF32, kBF16 or kF16 into `out`, or adds them. The short types widen
// without rounding. kUsage for every other type.
Status widen_floats(const void* data, DType dtype, uint64_t elements, Into how, float* out);

}  // namespace lockstep
