// Whether NVIDIA's driver is here and shows GPUs, without linking anything of CUDA's.
//
// Thread-safety: any thread. The driver stays loaded once it was asked.
#pragma once

#include <cstdint>

#include "comm/base/status.h"

namespace lockstep {

// How many GPUs the driver shows, at least one. kConfig: none, with the driver's words.
Result<uint32_t> count_gpus();

// Of a driver library by this name; tests give others.
Result<uint32_t> count_gpus(const char* driver_library);

}  // namespace lockstep
