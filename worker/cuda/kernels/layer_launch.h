// Launches the kernels of layers: images, layer normalisation, GELU, dropout, cross-entropy, column
// sums, casts to fp8.
//
// All pointers are device memory. All work is enqueued on `stream`, and no call waits. A Status is
// about the launch. T is float or Bf16. Sizes of zero launch nothing. layer_kernels.h describes the
// work.
//
// Thread-safety: any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/kernels/images.h"
#include "worker/cuda/kernels/layer_kernels.h"

namespace lockstep::cuda {

Status launch_images(const ImageWork& work, cudaStream_t stream);

template <typename T>
Status launch_layer_norm(const LayerNormForward<T>& op, uint32_t rows, uint32_t n,
                         cudaStream_t stream);

template <typename T>
Status launch_layer_norm_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                                  const NormGradients& gradients, cudaStream_t stream);

template <typename T>
Status launch_bias_gelu(const BiasGelu<T>& op, uint32_t rows, uint32_t n, cudaStream_t stream);

template <typename T>
Status launch_bias_gelu_backward(const BiasGeluBackward<T>& op, uint32_t rows, uint32_t n,
                                 const BiasGradient& gradient, cudaStream_t stream);

template <typename T>
Status launch_dropout(const DropoutWork<T>& work, cudaStream_t stream);

template <typename T>
Status launch_cross_entropy(const CrossEntropy<T>& op, uint32_t rows, cudaStream_t stream);

// sums (n) of the columns of x (rows, n). `partials`: column_chunks(rows) * n floats.
template <typename T>
Status launch_column_sums(const T* x, uint32_t rows, uint32_t n, float* partials, float* sums,
                          cudaStream_t stream);

// kInternal if the work is not as Fp8Cast requires.
Status launch_fp8_cast(const Fp8Cast& work, cudaStream_t stream);

}  // namespace lockstep::cuda
