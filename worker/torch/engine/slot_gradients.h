// Takes every parameter's gradient during backward as soon as it is there, and puts it into the
// region of the slot in progress.
//
// `.grad` stays undefined between slots. So autograd hands over its fresh tensor without an
// addition, and one copy brings the gradient to the region. Gradients that accumulate into views of
// the region would cost a zeroing and a read-add-write. They would also add to -0.0 and to the rest
// of an aborted backward.
//
// A weight that the forward casts (GradientSink) is shorter yet: its gradient is cast while it is
// copied to the region, and autograd gets none for the weight.
//
// INVARIANTS
//  G1 After backward() the range of every trained parameter is written. The range is zero if the
//     parameter was not used. Frozen parameters have no range.
//  G2 A parameter's gradient comes once a backward, by one of the two ways.
//
// Thread-safety: one thread. Autograd runs gradients of the CPU on the thread that calls
// backward(), and gradients of a device on another thread, for which the calling thread waits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/engine/flat_layout.h"
#include "worker/torch/model/gradient_sink.h"

namespace lockstep {

class SlotGradients final : public GradientSink {
 public:
  // Hooks into `parameters` (leaf tensors, by parameter index). `parameters` and `layout` outlive
  // the object.
  SlotGradients(const FlatLayout& layout, std::vector<at::Tensor> parameters);
  ~SlotGradients() override;
  SlotGradients(const SlotGradients&) = delete;
  SlotGradients& operator=(const SlotGradients&) = delete;

  // Runs backward from `output` with its gradient. Gradients of parameters go to `region`. Calls
  // `on_ready(parameter)`, if any, after each gradient.
  void backward(const at::Tensor& output, const at::Tensor& output_gradient, float* region,
                const std::function<void(uint32_t)>& on_ready);

  // False outside of backward().
  bool take_cast(uint32_t parameter, const at::Tensor& gradient) override;

 private:
  struct Hook;
  void take(uint32_t parameter);
  void put(uint32_t parameter, const at::Tensor& gradient);
  void deliver(uint32_t parameter);

  const FlatLayout& layout_;
  std::vector<at::Tensor> parameters_;
  float* region_ = nullptr;  // of the backward in progress; else null
  const std::function<void(uint32_t)>* on_ready_ = nullptr;
  std::vector<bool> taken_;
};

}  // namespace lockstep
