// Turns an error of the CUDA runtime into a Status.
//
// CUDA keeps a failed call's error as the thread's last one until some code takes it, and the check
// after a kernel's launch takes whatever error is there. So every error passes through one of these
// functions, which clear it: an error that a caller has handled, tolerates, or asked for (an event
// that is not reached yet) must not come up again as a failed launch.
//
// Thread-safety: any thread; what they clear is the calling thread's.
#pragma once

#include <cuda_runtime_api.h>

#include "comm/base/status.h"

namespace lockstep::cuda {

// `what` names the attempt: "launch adam update". kConfig if there is no usable device or driver,
// or another process has the device, else kInternal: the context is lost, and the process has to
// restart.
Status cuda_status(cudaError_t error, const char* what);

// For a call whose failure changes nothing for the caller.
void drop_error(cudaError_t error);

}  // namespace lockstep::cuda
