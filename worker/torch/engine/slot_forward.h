// The forward of one slot, from the inputs on the device to the output: logits for softmax
// cross-entropy, or else losses. Training, checks between ranks, trials, evaluation and replay all
// compute the forward here, so they cannot differ.
//
// Errors: the errors of the Device. LibTorch's exceptions pass through.
// Thread-safety: as Engine.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/loss_kind.h"
#include "worker/torch/device/device.h"
#include "worker/torch/model/model.h"

namespace lockstep {

class SlotForward {
 public:
  struct LossSettings {
    LossKind kind = LossKind::kCrossEntropy;
    double label_smoothing = 0;  // while training, and where samples have weights
  };

  struct Arithmetic {
    at::ScalarType compute_type = at::kFloat;  // precision.h
    bool trains_in_fp8 = false;                // evaluation computes in compute_type
    bool is_fast = false;                      // ForwardMode
  };

  // All arguments outlive the object. `parameters` and `buffers`: views of the device's memory, by
  // index of the model's layout. `sink`: ForwardMode.
  SlotForward(const Model& model, Device& device, const std::vector<at::Tensor>& parameters,
              const std::vector<at::Tensor>& buffers, const Arithmetic& arithmetic,
              const LossSettings& loss, GradientSink& sink);

  // In training mode, from the boundary's statistics. A recorded slot does not hold a key: kernels
  // read the key that send() sent. `observer` may be null.
  Result<ModelOutput> train(uint64_t dropout_key, const ForwardMode::Observer* observer = nullptr);

  // In evaluation mode, with the statistics of Device::reset_statistics(). `counters`: as
  // ForwardMode::counters.
  Result<ModelOutput> evaluate(std::span<const int64_t> counters);

 private:
  Result<ModelOutput> run(const ForwardMode& mode);

  const Model& model_;
  Device& device_;
  const std::vector<at::Tensor>& parameters_;
  const std::vector<at::Tensor>& buffers_;
  const Arithmetic arithmetic_;
  const LossKind loss_;
  const double label_smoothing_;
  GradientSink& sink_;
};

}  // namespace lockstep
