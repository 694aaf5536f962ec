// The forward of one slot: from what was sent to the device to its logits. Training, checks between
// ranks, trials, evaluation and replay all compute it here, so that they cannot differ.
//
// Errors: those of the Device; LibTorch's exceptions pass through.
// Thread-safety: as Engine.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/base/status.h"
#include "worker/engine/device/device.h"
#include "worker/model/model.h"

namespace lockstep {

class SlotForward {
 public:
  // All outlive it. `parameters` and `buffers`: views of the device's memory, by index of the
  // model's layout. `compute_type`: precision.h.
  SlotForward(const Model& model, Device& device, const std::vector<at::Tensor>& parameters,
              const std::vector<at::Tensor>& buffers, at::ScalarType compute_type);

  // In training mode, from the boundary's statistics: logits (B, classes) or (B, T, classes). A
  // recorded slot has no key of its own: kernels read the one that was sent. `observer` may be
  // null.
  Result<at::Tensor> train(uint64_t dropout_key, const ForwardMode::Observer* observer = nullptr);

  // In evaluation mode, with the statistics that Device::reset_statistics() left.
  Result<at::Tensor> evaluate();

 private:
  Result<at::Tensor> run(const ForwardMode& mode);

  const Model& model_;
  Device& device_;
  const std::vector<at::Tensor>& parameters_;
  const std::vector<at::Tensor>& buffers_;
  const at::ScalarType compute_type_;
};

}  // namespace lockstep
