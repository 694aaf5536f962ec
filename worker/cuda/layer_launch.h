// Launches the kernels of layers: images, layer normalisation, GELU, dropout, cross-entropy, column
// sums.
//
// All pointers are device memory, all work is enqueued on `stream` and nothing is waited for; a
// Status is about the launch. T is float or Bf16. Sizes of zero launch nothing.
//
// Thread-safety: any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/bf16.h"
#include "worker/cuda/cross_entropy.h"
#include "worker/cuda/images.h"
#include "worker/cuda/layer_kernels.h"
#include "worker/cuda/layer_norm.h"

namespace lockstep::cuda {

Status launch_images(const ImageWork& work, cudaStream_t stream);

template <typename T>
Status launch_layer_norm(const LayerNormForward<T>& op, uint32_t rows, uint32_t n,
                         cudaStream_t stream);

// Also the gradients of gain and bias (n each), through `partials`: 2 * column_chunks(rows) * n
// floats.
template <typename T>
Status launch_layer_norm_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n,
                                  float* partials, float* d_gain, float* d_bias,
                                  cudaStream_t stream);

// y = gelu(x + bias), (rows, n). y may be x only if backward gets x from elsewhere.
template <typename T>
Status launch_bias_gelu(const T* x, const float* bias, T* y, uint32_t rows, uint32_t n,
                        cudaStream_t stream);

// dx = dy * gelu'(x + bias), and d_bias (n) as its column sums through `partials`:
// column_chunks(rows) * n floats. dx may be dy.
template <typename T>
Status launch_bias_gelu_backward(const T* dy, const T* x, const float* bias, T* dx, uint32_t rows,
                                 uint32_t n, float* partials, float* d_bias, cudaStream_t stream);

template <typename T>
Status launch_dropout(const DropoutWork<T>& work, cudaStream_t stream);

// `gradient` may be `logits`; `losses` by row, and whether the row is `right` (1 or 0) where that
// is not null.
template <typename T>
Status launch_cross_entropy(const T* logits, T* gradient, const int64_t* labels, uint32_t rows,
                            RowWidth width, float scale, float* losses, uint32_t* right,
                            cudaStream_t stream);

// sums (n) of x (rows, n), through `partials`: column_chunks(rows) * n floats.
template <typename T>
Status launch_column_sums(const T* x, uint32_t rows, uint32_t n, float* partials, float* sums,
                          cudaStream_t stream);

}  // namespace lockstep::cuda
