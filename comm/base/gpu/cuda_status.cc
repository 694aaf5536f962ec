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
    default:
      return {Code::kInternal, said};
  }
}

}  // namespace lockstep::cuda
