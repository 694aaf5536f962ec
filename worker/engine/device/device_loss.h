// The loss of a slot on the device, by kernel: its gradient there, its value on its way to the host
// while backward goes on.
//
// Thread-safety: as Device.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>

#include "worker/cuda/device_module.h"
#include "worker/engine/core/loss.h"
#include "worker/engine/device/device_inputs.h"

namespace lockstep {

class DeviceLoss {
 public:
  // `is_scaled`: the gradient is multiplied by SlotValues::loss_scale. The module outlives it.
  DeviceLoss(DeviceModule& module, bool is_scaled) : module_(module), is_scaled_(is_scaled) {}

  // As Device::start_loss(), of what lies at `inputs`. What it takes of its own memory is there
  // from the first loss of that many rows on, and stays where it is.
  Status start(const at::Tensor& logits, bool in_place, const DeviceInputs& inputs,
               at::Tensor* gradient);
  // Of the last start(), or of a replay of what a start() of so many rows has enqueued.
  Result<SlotLoss> wait();
  size_t rows() const { return rows_; }
  void expect(size_t rows) { rows_ = rows; }

 private:
  // What the kernels of cross-entropy give, by row of the logits.
  struct Rows {
    float* losses = nullptr;
    uint32_t* right = nullptr;
    float* losses_host = nullptr;  // pinned
    uint32_t* right_host = nullptr;
  };

  Status reserve(size_t rows);
  template <typename T>
  CrossEntropy<T> work_of(const at::Tensor& in, const at::Tensor& out,
                          const DeviceInputs& inputs) const;

  DeviceModule& module_;
  const bool is_scaled_;
  // By their number, rounded up to a power of two: padded documents make many.
  std::map<size_t, Rows> reserved_;
  size_t rows_ = 0;  // of the loss that is waited for next
};

}  // namespace lockstep
