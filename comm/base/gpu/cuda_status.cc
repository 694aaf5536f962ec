#include "comm/base/gpu/cuda_status.h"

#include <string>

namespace lockstep::cuda {

void drop_error(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
}

Status cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Status::ok();
  drop_error(error);
  const std::string said =
      std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
      return {Code::kConfig, said +
                                 "; this worker needs a GPU of compute capability 8.0 or newer "
                                 "and a driver for CUDA 13"};
    case cudaErrorDevicesUnavailable:
      return {Code::kConfig,
              said +
                  "; the GPU is in compute mode EXCLUSIVE_PROCESS or PROHIBITED, and another "
                  "process may have it, or another process has taken its memory: see nvidia-smi. "
                  "Give each worker a GPU of its own, or allow several processes with nvidia-smi "
                  "-c DEFAULT"};
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return {Code::kConfig, said +
                                 "; the GPU is shared by MPS: start its daemon "
                                 "(nvidia-cuda-mps-control -d), take fewer processes, or unset "
                                 "CUDA_MPS_PIPE_DIRECTORY"};
    default:
      return {Code::kInternal, said};
  }
}

}  // namespace lockstep::cuda
