// Layers as one kernel each, where LibTorch would run several operators. An interface of plain
// values: a DeviceModule has them, and models take them (ForwardMode).
//
// All pointers are the device's memory, rows are contiguous, and work is enqueued behind what
// LibTorch's operators have enqueued. Activations are float or Bf16. Errors: kInternal.
//
// Thread-safety: as LibTorch's operators.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "worker/cuda/bf16.h"
#include "worker/cuda/cross_entropy.h"
#include "worker/cuda/dropout.h"
#include "worker/cuda/layer_norm.h"
#include "worker/cuda/slot_values.h"

namespace lockstep {

// Gradients of a layer's weights, through `partials` (column_sums.h).
struct NormGradients {
  float* partials = nullptr;  // 2 * column_chunks(rows) * n
  float* gain = nullptr;      // (n)
  float* bias = nullptr;      // (n)
};
struct BiasGradient {
  float* partials = nullptr;  // column_chunks(rows) * n
  float* bias = nullptr;      // (n)
};

// y = gelu(x + bias), GPT-2's (gelu.h). y may be x only if backward gets x from elsewhere.
template <typename T>
struct BiasGelu {
  const T* x = nullptr;  // (rows, n)
  const float* bias = nullptr;
  T* y = nullptr;  // (rows, n)
};
// dx = dy * gelu'(x + bias), whose column sums are the bias's gradient. dx may be dy.
template <typename T>
struct BiasGeluBackward {
  const T* dy = nullptr;  // (rows, n)
  const T* x = nullptr;   // (rows, n)
  const float* bias = nullptr;
  T* dx = nullptr;  // (rows, n)
};

// Softmax cross-entropy of rows of logits and its gradient, which may lie in their place
// (cross_entropy.h), for the targets that labels and values make (row_target.h); by row the loss,
// and 1 where the label has the first of the largest logits, else 0.
template <typename T>
struct CrossEntropy {
  const T* logits = nullptr;  // (rows, width.stride)
  T* gradient = nullptr;      // likewise
  const int64_t* labels = nullptr;
  cuda::RowWidth width = {};
  const SlotValues* values = nullptr;  // the gradient is divided by step_labels
  float* losses = nullptr;
  uint32_t* right = nullptr;  // null: nobody asks
};

// For one type of activations.
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
  // Of x, and of a gradient.
  virtual Status dropout(const cuda::DropoutWork<T>& work) = 0;
};

// Null: there are none, and LibTorch's operators are taken.
struct LayerKernels {
  LayerKernelsOf<float>* of_floats = nullptr;
  LayerKernelsOf<cuda::Bf16>* of_bf16 = nullptr;
};

}  // namespace lockstep
