// The gradient buffer in device memory: one allocation, regions 256-byte aligned.
//
// Thread-safety: immutable after make_cuda_buffer(). Streams order access to the content.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"

namespace lockstep::testing {

// Zeroed, on the current device. Errors: kConfig without a device, kInternal if memory runs out.
Result<std::unique_ptr<GradientBuffer>> make_cuda_buffer(const BufferLayout& layout,
                                                         uint32_t regions);

}  // namespace lockstep::testing
