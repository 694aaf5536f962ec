#include "worker/torch/device/cpu_device.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstring>

#include "worker/torch/device/sample_losses.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

constexpr int64_t kElementsPerThread = 32'768;  // fewer are not worth waking another thread

}  // namespace

CpuDevice::CpuDevice(const FlatLayout& layout, BoundaryState& state)
    : layout_(layout),
      state_(state),
      slot_statistics_(at::zeros({static_cast<int64_t>(layout.statistics_elements())})) {}

Status CpuDevice::reset_statistics() {
  std::memcpy(slot_statistics(), state_.memory().statistics,
              layout_.statistics_elements() * sizeof(float));
  return Status::ok();
}

Status CpuDevice::send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                       uint64_t samples, const SlotValues& values) {
  inputs_ = model_input(shape, inputs, samples);
  labels_ = labels;
  shape_ = shape;
  samples_ = samples;
  values_ = values;
  return Status::ok();
}

at::Tensor CpuDevice::labels() {
  return label_input(shape_, labels_, samples_);
}

FieldTensors CpuDevice::fields() {
  return field_inputs(shape_, labels_, samples_);
}

Status CpuDevice::start_losses(const ModelOutput& output, at::Tensor* gradient) {
  const at::Tensor rows = sample_rows(output);
  loss_ = add_samples(rows_of(output), rows.const_data_ptr<float>(), samples_);
  if (gradient != nullptr) *gradient = losses_gradient(output.losses, values_);
  return Status::ok();
}

Status CpuDevice::start_loss(const at::Tensor& logits, bool /*in_place*/, at::Tensor* gradient) {
  const at::Tensor out = logits.contiguous();
  if (gradient != nullptr) *gradient = at::empty(out.sizes(), out.options().requires_grad(false));
  const int64_t classes = out.size(-1);
  const float* rows = out.const_data_ptr<float>();
  float* slopes = gradient == nullptr ? nullptr : gradient->mutable_data_ptr<float>();
  row_losses_.resize(static_cast<size_t>(out.numel() / classes));
  const auto compute = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = static_cast<uint64_t>(i);
      row_losses_[row] = softmax_cross_entropy(rows + i * classes,
                                               target_of(labels_, row, row_losses_.size(), values_),
                                               static_cast<uint64_t>(classes), values_.step_labels,
                                               slopes == nullptr ? nullptr : slopes + i * classes);
    }
  };
  at::parallel_for(0, out.numel() / classes, kElementsPerThread / classes + 1, compute);
  loss_ = {};
  for (const SlotLoss& row : row_losses_) loss_.add(row);  // in their order, for any threads
  if (gradient != nullptr && values_.loss_scale != 1) gradient->mul_(values_.loss_scale);
  return Status::ok();
}

Status CpuDevice::take_statistics(float* gradients) {
  std::memcpy(gradients + layout_.buffer.gradients, slot_statistics(),
              layout_.statistics_elements() * sizeof(float));
  return Status::ok();
}

}  // namespace lockstep
