// Takes every parameter's gradient during backward, as soon as it is there, and puts it into the
// region of the slot in progress.
//
// `.grad` stays undefined between slots: autograd then hands its fresh tensor over without adding,
// and one copy brings it home. Gradients that accumulate into views of the region cost a zeroing
// and a read-add-write instead, and add to -0.0 and to what an aborted backward left behind.
//
// INVARIANTS
//  G1 After backward() every parameter's range of the region is written, with zeros where the
//     parameter was not used.
//
// Thread-safety: one thread; autograd runs CPU gradients on the thread that called backward(), a
// device's on one of its own, for which that thread waits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/engine/core/flat_layout.h"

namespace lockstep {

class SlotGradients {
 public:
  // Hooks into `parameters` (leaf tensors, by parameter index), which outlive it, as does `layout`.
  SlotGradients(const FlatLayout& layout, std::vector<at::Tensor> parameters);
  ~SlotGradients();
  SlotGradients(const SlotGradients&) = delete;
  SlotGradients& operator=(const SlotGradients&) = delete;

  // Backward from `output` with its gradient; gradients of parameters go to `region`, and
  // `on_ready(parameter)`, if any, is called after each.
  void backward(const at::Tensor& output, const at::Tensor& output_gradient, float* region,
                const std::function<void(uint32_t)>& on_ready);

 private:
  struct Hook;
  void take(uint32_t parameter);
  void deliver(uint32_t parameter);

  const FlatLayout& layout_;
  std::vector<at::Tensor> parameters_;
  float* region_ = nullptr;
  const std::function<void(uint32_t)>* on_ready_ = nullptr;
  std::vector<bool> taken_;
};

}  // namespace lockstep
