// Turns an error of the CUDA runtime into a Status.
//
// Thread-safety: pure functions.
#pragma once

#include <cuda_runtime_api.h>

#include "comm/base/status.h"

namespace lockstep::cuda {

// `what` names the attempt: "launch adam update". kConfig if there is no usable device or driver,
// else kInternal: the context is lost, and the process has to restart.
Status cuda_status(cudaError_t error, const char* what);

}  // namespace lockstep::cuda
