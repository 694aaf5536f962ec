#include "worker/engine/device_inputs.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "worker/engine/device_memory.h"
#include "worker/model/model.h"

namespace lockstep {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Status DeviceInputs::set_transform(const data::Transform& transform) {
  return upload_table(module_, transform.tables(), &transform_);
}

Result<at::Tensor> DeviceInputs::load(const data::SampleShape& shape, const void* inputs,
                                      const int64_t* labels, uint64_t samples) {
  const size_t each = shape.is_sequence() ? sizeof(int64_t) : sizeof(uint8_t);
  const size_t input_bytes = samples * shape.elements() * each;
  const size_t label_bytes = samples * shape.labels() * sizeof(int64_t);
  const size_t labels_at = aligned(input_bytes);
  turn_ = 1 - turn_;
  Stage& stage = stages_[turn_];
  LOCKSTEP_RETURN_IF_ERROR(module_.wait(sent(turn_)));  // N1
  LOCKSTEP_RETURN_IF_ERROR(reserve(&stage, labels_at + label_bytes));
  std::memcpy(stage.host, inputs, input_bytes);
  std::memcpy(stage.host + labels_at, labels, label_bytes);
  LOCKSTEP_RETURN_IF_ERROR(send(labels_at + label_bytes));
  labels_ = reinterpret_cast<const int64_t*>(stage.device + labels_at);
  if (shape.is_sequence()) return model_input(shape, stage.device, samples, where_);
  return transformed(shape, stage.device, samples);
}

Status DeviceInputs::send(size_t bytes) {
  const Stage& stage = stages_[turn_];
  // All that computes with the other stage has been enqueued by now.
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(used(1 - turn_), DeviceLane::kCompute));
  LOCKSTEP_RETURN_IF_ERROR(module_.hold(DeviceLane::kInputs, used(turn_)));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(DeviceLane::kInputs, stage.device, stage.host, bytes));
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(sent(turn_), DeviceLane::kInputs));
  return module_.hold(DeviceLane::kCompute, sent(turn_));
}

Status DeviceInputs::reserve(Stage* stage, size_t bytes) {
  if (bytes <= stage->bytes) return Status::ok();
  stage->bytes = std::max(bytes, 2 * stage->bytes);
  LOCKSTEP_RETURN_IF_ERROR(allocate_host(module_, &stage->host, stage->bytes));
  return allocate(module_, &stage->device, stage->bytes);
}

Result<at::Tensor> DeviceInputs::transformed(const data::SampleShape& shape,
                                             const std::byte* stored, uint64_t samples) {
  const at::Tensor images =
      at::empty({static_cast<int64_t>(samples), shape.channels, shape.height, shape.width},
                at::TensorOptions(where_).dtype(at::kFloat));  // (B, C, H, W)
  LOCKSTEP_RETURN_IF_ERROR(module_.images({.bytes = reinterpret_cast<const uint8_t*>(stored),
                                           .tables = transform_->data(),
                                           .out = images.mutable_data_ptr<float>(),
                                           .samples = static_cast<uint32_t>(samples),
                                           .channels = shape.channels,
                                           .plane = shape.height * shape.width}));
  return images;
}

}  // namespace lockstep
