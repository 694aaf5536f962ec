// Asks NVIDIA's driver for GPUs, without linking anything of CUDA.
//
// Thread-safety: any thread. The driver stays loaded after the first call.
#pragma once

#include <cstdint>

#include "comm/base/status.h"

namespace lockstep {

// The number of GPUs, at least one. kConfig if there is none, with the driver's words.
Result<uint32_t> count_gpus();

// Asks the driver library of this name; for tests.
Result<uint32_t> count_gpus(const char* driver_library);

}  // namespace lockstep
