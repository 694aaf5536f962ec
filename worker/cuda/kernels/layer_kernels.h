// Layers as one kernel each, where LibTorch would run several operators. It is an interface of
// plain values: a DeviceModule provides the kernels, and models use them (ForwardMode).
//
// All pointers are the device's memory, and rows are contiguous. Work is enqueued after the work of
// LibTorch's operators. Activations are float or Bf16. Errors: kInternal.
//
// Thread-safety: as LibTorch's operators.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/kernels/bf16.h"
#include "worker/cuda/kernels/cross_entropy.h"
#include "worker/cuda/kernels/dropout.h"
#include "worker/cuda/kernels/fp8.h"
#include "worker/cuda/kernels/layer_norm.h"
#include "worker/cuda/kernels/slot_values.h"

namespace lockstep {

// Gradients of a layer's weights, summed through `partials` (column_sums.h).
struct NormGradients {
  float* partials = nullptr;  // 2 * column_chunks(rows) * n
  float* gain = nullptr;      // (n)
  float* bias = nullptr;      // (n)
};
struct BiasGradient {
  float* partials = nullptr;  // column_chunks(rows) * n
  float* bias = nullptr;      // (n)
};

// y = gelu(x + bias), GPT-2's GELU (gelu.h). y may be x only if backward gets x from elsewhere.
template <typename T>
struct BiasGelu {
  const T* x = nullptr;  // (rows, n)
  const float* bias = nullptr;
  T* y = nullptr;  // (rows, n)
};
// dx = dy * gelu'(x + bias). The column sums of dx are the bias's gradient. dx may be dy.
template <typename T>
struct BiasGeluBackward {
  const T* dy = nullptr;  // (rows, n)
  const T* x = nullptr;   // (rows, n)
  const float* bias = nullptr;
  T* dx = nullptr;  // (rows, n)
};

// Softmax cross-entropy of rows of logits, and its gradient (cross_entropy.h). The gradient may
// overwrite the logits. Labels and values make the targets (row_target.h). Gives for each row the
// loss, and 1 if the label has the first of the largest logits, else 0.
template <typename T>
struct CrossEntropy {
  const T* logits = nullptr;  // (rows, width.stride)
  T* gradient = nullptr;      // (rows, width.stride)
  const int64_t* labels = nullptr;
  cuda::RowWidth width = {};
  const SlotValues* values = nullptr;  // the gradient is divided by step_labels
  float* losses = nullptr;
  uint32_t* right = nullptr;  // null: not wanted
};

// The kernels for one type of activations.
template <typename T>
class LayerKernelsOf {
 public:
  virtual ~LayerKernelsOf() = default;
  virtual Status norm(const cuda::LayerNormForward<T>& work, uint32_t rows, uint32_t n) = 0;
  virtual Status norm_backward(const cuda::LayerNormBackward<T>& work, uint32_t rows, uint32_t n,
                               const NormGradients& gradients) = 0;
  virtual Status bias_gelu(const BiasGelu<T>& work, uint32_t rows, uint32_t n) = 0;
  virtual Status bias_gelu_backward(const BiasGeluBackward<T>& work, uint32_t rows, uint32_t n,
                                    const BiasGradient& gradient) = 0;
  virtual Status cross_entropy(const CrossEntropy<T>& work, uint32_t rows) = 0;
  // Dropout of x, and of a gradient.
  virtual Status dropout(const cuda::DropoutWork<T>& work) = 0;
};

// The casts of train.precision fp8.
class Fp8Kernels {
 public:
  virtual ~Fp8Kernels() = default;
  virtual Status cast(const cuda::Fp8Cast& work) = 0;
};

// Null: the device has no kernels, and LibTorch's operators run. Without `fp8` the host casts.
struct LayerKernels {
  LayerKernelsOf<float>* of_floats = nullptr;
  LayerKernelsOf<cuda::Bf16>* of_bf16 = nullptr;
  Fp8Kernels* fp8 = nullptr;
};

}  // namespace lockstep
