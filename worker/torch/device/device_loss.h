// The loss of a slot on the device, computed by a kernel. The gradient stays on the device. The
// value goes to the host while backward goes on.
//
// Thread-safety: as Device.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>

#include "worker/cuda/device_module.h"
#include "worker/engine/loss.h"
#include "worker/torch/device/device_inputs.h"

namespace lockstep {

class DeviceLoss {
 public:
  // `is_scaled`: multiplies the gradient by SlotValues::loss_scale. `module` outlives the object.
  DeviceLoss(DeviceModule& module, bool is_scaled) : module_(module), is_scaled_(is_scaled) {}

  // As Device::start_loss(), for the labels and values in `inputs`. The first loss with a number of
  // rows reserves memory for that number. The memory stays where it is.
  Status start(const at::Tensor& logits, bool in_place, const DeviceInputs& inputs,
               at::Tensor* gradient);
  // As Device::start_losses(), for the rows of sample_rows().
  Status start_rows(const at::Tensor& rows, const SampleRows& has);
  // The loss of the last start, or of a replay of the work that a start() with as many rows
  // enqueued.
  Result<SlotScore> wait();
  size_t rows() const { return rows_; }
  void expect(size_t rows) { rows_ = rows; }

 private:
  // The results of the kernels of cross-entropy for each row of the logits.
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
  // By the number of rows, rounded up to a power of two: padded documents have many numbers.
  std::map<size_t, Rows> reserved_;
  size_t rows_ = 0;                // of the next loss that wait() gives
  std::optional<SampleRows> has_;  // of start_rows(); else none
};

}  // namespace lockstep
