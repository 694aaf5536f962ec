#include "worker/torch/device/device_inputs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/loader/sample_reader.h"
#include "worker/device/device_marks.h"
#include "worker/device/device_memory.h"

namespace lockstep {
namespace {

constexpr size_t kAlignment = 64;

constexpr size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr size_t kInputsAt = aligned(sizeof(SlotValues));

}  // namespace

Status DeviceInputs::set_transform(const data::Transform& transform) {
  return upload_table(module_, transform.tables(), &transform_);
}

DeviceInputs::BatchPlace DeviceInputs::place_of(const data::SampleShape& shape, const void* inputs,
                                                const int64_t* labels, uint64_t samples) {
  BatchPlace batch{.inputs = inputs, .labels = labels};
  batch.input_bytes = samples * data::input_bytes(shape, data::ImageForm::kStored);
  batch.labels_at = aligned(kInputsAt + batch.input_bytes);
  batch.label_bytes = samples * shape.label_words() * sizeof(int64_t);
  return batch;
}

void DeviceInputs::fill(Stage* stage, const BatchPlace& batch) {
  std::memcpy(stage->host + kInputsAt, batch.inputs, batch.input_bytes);
  std::memcpy(stage->host + batch.labels_at, batch.labels, batch.label_bytes);
  stage->sent = batch.bytes();
}

Status DeviceInputs::send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                          uint64_t samples, const SlotValues& values) {
  shape_ = shape;
  samples_ = samples;
  batch_ = place_of(shape, inputs, labels, samples);
  const bool is_there = std::exchange(ahead_, {}) == batch_;
  turn_ = 1 - turn_;
  Stage& stage = stages_[turn_];
  if (!is_there) {
    LOCKSTEP_RETURN_IF_ERROR(module_.wait(kInputsSent + turn_));  // N1
    LOCKSTEP_RETURN_IF_ERROR(reserve(&stage, bytes()));
  }
  std::memcpy(stage.host, &values, sizeof values);  // the batch sent ahead follows them
  at_ = stage.device;
  if (is_there || (keeps_ && stage.sent == bytes())) return copy_stage(sizeof values);
  fill(&stage, batch_);
  return copy_stage(stage.sent);
}

Status DeviceInputs::send_ahead(const data::SampleShape& shape, const void* inputs,
                                const int64_t* labels, uint64_t samples) {
  const BatchPlace batch = place_of(shape, inputs, labels, samples);
  const uint32_t turn = 1 - turn_;
  Stage& stage = stages_[turn];
  ahead_ = {};
  if (keeps_ || batch.bytes() > stage.bytes) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(module_.wait(kInputsSent + turn));  // N1
  fill(&stage, batch);
  LOCKSTEP_RETURN_IF_ERROR(module_.hold(DeviceLane::kInputs, kInputsUsed + turn));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(DeviceLane::kInputs, stage.device + kInputsAt,
                                        stage.host + kInputsAt, batch.bytes() - kInputsAt));
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kInputsSent + turn, DeviceLane::kInputs));
  ahead_ = batch;
  return Status::ok();
}

// Copies so many bytes of the stage, from its begin.
Status DeviceInputs::copy_stage(size_t bytes) {
  const Stage& stage = stages_[turn_];
  // All that computes with the other stage has been enqueued by now.
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kInputsUsed + 1 - turn_, DeviceLane::kCompute));
  LOCKSTEP_RETURN_IF_ERROR(module_.hold(DeviceLane::kInputs, kInputsUsed + turn_));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(DeviceLane::kInputs, stage.device, stage.host, bytes));
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kInputsSent + turn_, DeviceLane::kInputs));
  return module_.hold(DeviceLane::kCompute, kInputsSent + turn_);
}

Status DeviceInputs::move_to(std::byte* place) {
  at_ = place;
  return module_.copy(DeviceLane::kCompute, place, stages_[turn_].device, bytes());
}

Status DeviceInputs::reserve(Stage* stage, size_t bytes) {
  if (bytes <= stage->bytes) return Status::ok();
  const size_t wanted = std::max(bytes, 2 * stage->bytes);
  module_.release(stage->host);
  module_.release(stage->device);
  *stage = {};
  LOCKSTEP_RETURN_IF_ERROR(allocate_host(module_, &stage->host, wanted));
  if (Status status = allocate(module_, &stage->device, wanted); !status.is_ok()) {
    module_.release(stage->host);
    stage->host = nullptr;
    return status;
  }
  stage->bytes = wanted;
  return Status::ok();
}

Result<at::Tensor> DeviceInputs::inputs() {
  const std::byte* stored = at_ + kInputsAt;
  if (!shape_.has_bytes()) return model_input(shape_, stored, samples_, where_);
  return transformed(stored);
}

Result<at::Tensor> DeviceInputs::transformed(const std::byte* stored) {
  const at::Tensor images =
      at::empty({static_cast<int64_t>(samples_), shape_.channels, shape_.height, shape_.width},
                at::TensorOptions(where_).dtype(at::kFloat));  // (B, C, H, W)
  LOCKSTEP_RETURN_IF_ERROR(module_.images({.bytes = reinterpret_cast<const uint8_t*>(stored),
                                           .tables = transform_->data(),
                                           .share = &values()->pixel_share,
                                           .out = images.mutable_data_ptr<float>(),
                                           .samples = static_cast<uint32_t>(samples_),
                                           .channels = shape_.channels,
                                           .plane = shape_.height * shape_.width}));
  return images;
}

at::Tensor DeviceInputs::label_tensor() const {
  return label_input(shape_, labels(), samples_, where_);
}

FieldTensors DeviceInputs::field_tensors() const {
  return field_inputs(shape_, labels(), samples_, where_);
}

at::Tensor DeviceInputs::view(const float* value) const {
  return at::for_blob(const_cast<float*>(value), {})
      .options(at::TensorOptions(where_).dtype(at::kFloat))
      .target_device(where_)
      .make_tensor();
}

}  // namespace lockstep
