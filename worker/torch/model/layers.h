// Layers that the built-in models share, as functions over tensors. kernel_layers.h has the layers
// for which a device may have a kernel of its own.
//
// Thread-safety: as Model::forward().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "worker/model/spec.h"
#include "worker/torch/model/model.h"

namespace lockstep {

// Parameters and buffers of one forward, and how it runs.
struct Forward {
  std::span<const at::Tensor> parameters;
  std::span<const at::Tensor> buffers;
  const ForwardMode& mode;
};

// The parameter as matrix products on its device take it: under autocast in autocast's type, so
// autocast casts nothing more. Its gradient goes to mode.sink. At most once a forward for each
// parameter: a weight that two layers share is left to autocast.
at::Tensor cast_weight(const Forward& f, uint32_t parameter);

// x: (..., in) -> (..., out), without the bias; in fp8 if the mode says so (fp8_linear.h).
at::Tensor linear_product(const Forward& f, const at::Tensor& x, uint32_t weight);

// x: (..., in) -> (..., out)
at::Tensor linear(const Forward& f, const at::Tensor& x, uint32_t weight);

// x: (B, in, H, W) -> (B, out, H - k + 1, W - k + 1)
at::Tensor conv(const Forward& f, const at::Tensor& x, uint32_t weight);

// x: (B, in, H, W) -> (B, out, (H + 2 padding - k) / stride + 1, ...), without a bias.
struct ConvPlace {
  int64_t stride = 1;
  int64_t padding = 0;
};
at::Tensor conv_without_bias(const Forward& f, const at::Tensor& x, uint32_t weight,
                             const ConvPlace& place);

// x: (B, C) or (B, C, H, W)
at::Tensor batch_norm(const Forward& f, const at::Tensor& x, const LayoutBuilder::BatchNorm& layer);

inline constexpr double kLayerNormEps = 1e-5;

// Over the last dimension. x: (..., width)
at::Tensor layer_norm(const Forward& f, const at::Tensor& x, uint32_t weight);

}  // namespace lockstep
