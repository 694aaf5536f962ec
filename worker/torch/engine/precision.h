// The precision of forward and backward (train.precision): LibTorch's autocast around the forward
// of one slot. fp8 is bf16, except for the products of some linear layers while training
// (torch/model/fp8_linear.h). Convolutions and matrix products compute in the short type. Operators
// that need the range of fp32 stay in fp32, by LibTorch's own lists. Weights are fp32 and are cast
// once a slot. Their gradients are cast back to fp32 (slot_gradients.h).
//
// Thread-safety: as LibTorch: a setting holds for the calling thread.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "worker/cuda/device_module.h"

namespace lockstep {

// kFloat means no autocast.
at::ScalarType compute_type(const wire::TrainSpec& train);
bool uses_fp8(const wire::TrainSpec& train);

// kUsage if fp8 is not for this job, kConfig if it is not for this device (null: the CPU).
Status check_precision(const wire::JobSpec& job, const DeviceModule* module);

// Autocast holds until the end of the scope. The end of the scope drops the cached casts: the next
// slot needs a graph of its own, and the next step has other weights.
class AutocastScope {
 public:
  AutocastScope(at::DeviceType device, at::ScalarType type);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const at::DeviceType device_;
  const bool was_enabled_;
  const at::ScalarType type_before_;
};

}  // namespace lockstep
