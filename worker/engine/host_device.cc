#include "worker/engine/host_device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstring>

#include "worker/model/model.h"

namespace lockstep {

HostDevice::HostDevice(const FlatLayout& layout, BoundaryState& state)
    : layout_(layout),
      state_(state),
      slot_statistics_(at::zeros({static_cast<int64_t>(layout.statistics_elements())})) {}

Status HostDevice::reset_statistics() {
  std::memcpy(slot_statistics(), state_.memory().statistics,
              layout_.statistics_elements() * sizeof(float));
  return Status::ok();
}

Result<at::Tensor> HostDevice::load(const data::SampleShape& shape, const void* inputs,
                                    const int64_t* labels, uint64_t samples) {
  labels_ = labels;
  return model_input(shape, inputs, samples);
}

Status HostDevice::start_loss(const at::Tensor& logits, uint64_t step_labels,
                              at::Tensor* gradient) {
  const at::Tensor out = logits.contiguous();
  const auto classes = static_cast<uint64_t>(out.size(-1));
  if (gradient != nullptr) *gradient = at::empty(out.sizes(), out.options().requires_grad(false));
  loss_ = softmax_cross_entropy(
      out.const_data_ptr<float>(), labels_, static_cast<uint64_t>(out.numel()) / classes, classes,
      step_labels, gradient == nullptr ? nullptr : gradient->mutable_data_ptr<float>());
  return Status::ok();
}

Status HostDevice::take_statistics(float* region) {
  std::memcpy(region + layout_.buffer.gradients, slot_statistics(),
              layout_.statistics_elements() * sizeof(float));
  return Status::ok();
}

}  // namespace lockstep
