// What the CUDA runtime says, as a Status.
//
// Thread-safety: pure functions.
#pragma once

#include <cuda_runtime_api.h>

#include "comm/base/status.h"

namespace lockstep::cuda {

// `what` was tried: "launch adam update". kConfig where there is no usable device or driver, else
// kInternal: the context is lost, and the process has to be started again.
Status cuda_status(cudaError_t error, const char* what);

}  // namespace lockstep::cuda
