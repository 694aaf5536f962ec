// Takes the gradient of a weight that a forward casts (layers.h, cast_weight). Autograd would write
// the gradient in float for the weight, and its owner would copy it again. The sink gets it in the
// type that backward computed, and casts while it copies.
//
// Thread-safety: autograd's thread for the device of the gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lockstep {

class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // False if nothing collects gradients at present: then the weight gets its gradient as any other
  // tensor does. At most once a backward for each parameter.
  virtual bool take_cast(uint32_t parameter, const at::Tensor& gradient) = 0;
};

}  // namespace lockstep
