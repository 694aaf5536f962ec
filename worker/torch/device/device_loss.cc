#include "worker/torch/device/device_loss.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <bit>

#include "worker/device/device_marks.h"
#include "worker/device/device_memory.h"

namespace lockstep {
namespace {

// Logits as (rows, classes). The kernel also writes beyond the classes of a row. If it may not
// write in place, it gets dense rows, which have nothing there.
at::Tensor as_rows(const at::Tensor& logits, bool in_place) {
  return (in_place ? logits : logits.contiguous()).reshape({-1, logits.size(-1)});
}

}  // namespace

Status DeviceLoss::reserve(size_t rows) {
  rows = std::bit_ceil(rows);
  if (reserved_.contains(rows)) return Status::ok();
  Rows made;
  Status status = allocate(module_, &made.losses, rows);
  if (status.is_ok()) status = allocate(module_, &made.right, rows);
  if (status.is_ok()) status = allocate_host(module_, &made.losses_host, rows);
  if (status.is_ok()) status = allocate_host(module_, &made.right_host, rows);
  if (status.is_ok()) {
    reserved_[rows] = made;
    return status;
  }
  for (void* memory : {static_cast<void*>(made.losses), static_cast<void*>(made.right),
                       static_cast<void*>(made.losses_host)}) {
    module_.release(memory);
  }
  return status;
}

// `in` and `out`: (rows, classes), with the same strides.
template <typename T>
CrossEntropy<T> DeviceLoss::work_of(const at::Tensor& in, const at::Tensor& out,
                                    const DeviceInputs& inputs) const {
  return {.logits = static_cast<const T*>(in.const_data_ptr()),
          .gradient = static_cast<T*>(out.mutable_data_ptr()),
          .labels = inputs.labels(),
          .width = {static_cast<uint32_t>(in.size(1)), static_cast<uint32_t>(in.stride(0))},
          .values = inputs.values(),
          .losses = reserved_.at(std::bit_ceil(rows_)).losses,
          .right = reserved_.at(std::bit_ceil(rows_)).right};
}

Status DeviceLoss::start(const at::Tensor& logits, bool in_place, const DeviceInputs& inputs,
                         at::Tensor* gradient) {
  const at::Tensor in = as_rows(logits.detach(), in_place);
  const at::Tensor out = in_place ? in : at::empty(in.sizes(), in.options());
  has_.reset();
  rows_ = static_cast<size_t>(in.size(0));
  LOCKSTEP_RETURN_IF_ERROR(reserve(rows_));
  const LayerKernels kernels = module_.layers();
  const auto count = static_cast<uint32_t>(rows_);
  LOCKSTEP_RETURN_IF_ERROR(
      in.scalar_type() == at::kBFloat16
          ? kernels.of_bf16->cross_entropy(work_of<cuda::Bf16>(in, out, inputs), count)
          : kernels.of_floats->cross_entropy(work_of<float>(in, out, inputs), count));
  constexpr DeviceLane kLossLane = DeviceLane::kCompute;
  const Rows& rows = reserved_.at(std::bit_ceil(rows_));
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLossLane, rows.losses_host, rows.losses, rows_ * sizeof(float)));
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLossLane, rows.right_host, rows.right, rows_ * sizeof(uint32_t)));
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kLossThere, kLossLane));
  if (gradient == nullptr) return Status::ok();
  *gradient = out.view(logits.sizes());
  // In fp16 the logits are a copy in fp32 (loss_type()): a view may not be written to.
  if (is_scaled_) gradient->mul_(inputs.view(&inputs.values()->loss_scale));
  return Status::ok();
}

Status DeviceLoss::start_rows(const at::Tensor& rows, const SampleRows& has) {
  has_ = has;
  rows_ = static_cast<size_t>(rows.numel());
  LOCKSTEP_RETURN_IF_ERROR(reserve(rows_));
  const Rows& place = reserved_.at(std::bit_ceil(rows_));
  at::for_blob(place.losses, rows.sizes())
      .options(rows.options())
      .target_device(rows.device())
      .make_tensor()
      .copy_(rows, /*non_blocking=*/true);
  constexpr DeviceLane kLossLane = DeviceLane::kCompute;
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLossLane, place.losses_host, place.losses, rows_ * sizeof(float)));
  return module_.mark(kLossThere, kLossLane);
}

Result<SlotScore> DeviceLoss::wait() {
  LOCKSTEP_RETURN_IF_ERROR(module_.wait(kLossThere));
  const Rows& rows = reserved_.at(std::bit_ceil(rows_));
  if (has_) return add_samples(*has_, rows.losses_host, rows_ / has_->count());
  SlotScore loss;
  for (size_t row = 0; row < rows_; ++row) {
    loss.sum += static_cast<double>(rows.losses_host[row]);
    loss.correct += rows.right_host[row];
  }
  return loss;
}

}  // namespace lockstep
