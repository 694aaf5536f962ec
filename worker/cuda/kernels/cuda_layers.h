// LayerKernels on a device: one launch each, on one stream.
//
// Thread-safety: as LayerKernels.
#pragma once

#include <cuda_runtime_api.h>

#include "comm/base/gpu/cuda_status.h"
#include "worker/cuda/kernels/layer_kernels.h"
#include "worker/cuda/kernels/layer_launch.h"

namespace lockstep::cuda {

template <typename T>
class CudaLayers final : public LayerKernelsOf<T> {
 public:
  CudaLayers(int device, cudaStream_t stream) : device_(device), stream_(stream) {}

  Status norm(const LayerNormForward<T>& work, uint32_t rows, uint32_t n) override {
    LOCKSTEP_RETURN_IF_ERROR(here());
    return launch_layer_norm(work, rows, n, stream_);
  }
  Status norm_backward(const LayerNormBackward<T>& work, uint32_t rows, uint32_t n,
                       const NormGradients& gradients) override {
    LOCKSTEP_RETURN_IF_ERROR(here());
    return launch_layer_norm_backward(work, rows, n, gradients, stream_);
  }
  Status bias_gelu(const BiasGelu<T>& work, uint32_t rows, uint32_t n) override {
    LOCKSTEP_RETURN_IF_ERROR(here());
    return launch_bias_gelu(work, rows, n, stream_);
  }
  Status bias_gelu_backward(const BiasGeluBackward<T>& work, uint32_t rows, uint32_t n,
                            const BiasGradient& gradient) override {
    LOCKSTEP_RETURN_IF_ERROR(here());
    return launch_bias_gelu_backward(work, rows, n, gradient, stream_);
  }
  Status cross_entropy(const CrossEntropy<T>& work, uint32_t rows) override {
    LOCKSTEP_RETURN_IF_ERROR(here());
    return launch_cross_entropy(work, rows, stream_);
  }
  Status dropout(const DropoutWork<T>& work) override {
    LOCKSTEP_RETURN_IF_ERROR(here());
    return launch_dropout(work, stream_);
  }

 private:
  // The device is a setting of each thread, and autograd has its own threads.
  Status here() const { return cuda_status(cudaSetDevice(device_), "use the device"); }

  const int device_;
  const cudaStream_t stream_;
};

class CudaFp8 final : public Fp8Kernels {
 public:
  CudaFp8(int device, cudaStream_t stream) : device_(device), stream_(stream) {}

  Status cast(const Fp8Cast& work) override {
    LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaSetDevice(device_), "use the device"));
    return launch_fp8_cast(work, stream_);
  }

 private:
  const int device_;
  const cudaStream_t stream_;
};

}  // namespace lockstep::cuda
