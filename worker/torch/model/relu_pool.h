// ReLU and 2x2 max-pooling as one differentiable operation over tensors; see relu_pool_kernel.h.
// Thread-safety: as Model::forward().
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep {

// x: (B, C, H, W) -> (B, C, H / 2, W / 2)
at::Tensor relu_max_pool2(const at::Tensor& x);

}  // namespace lockstep
