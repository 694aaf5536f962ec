#include "worker/script/batch_handle.h"

#include <utility>

#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {
namespace {

DType dtype_of(data::FieldType type) {
  if (type == data::FieldType::kU8) return DType::kU8;
  return type == data::FieldType::kI64 ? DType::kI64 : DType::kF32;
}

ls_field_role role_of(data::FieldRole role) {
  if (role == data::FieldRole::kInput) return LS_INPUT;
  return role == data::FieldRole::kTarget ? LS_TARGET : LS_WEIGHT;
}

// From the first element to one past the last.
uint64_t span_bytes(const data::BatchTensor& tensor) {
  int64_t of_sample = 1;
  for (size_t d = 1; d < tensor.sizes.size(); ++d) of_sample *= tensor.sizes[d];
  const int64_t elements = (tensor.sizes[0] - 1) * tensor.sample_stride + of_sample;
  return static_cast<uint64_t>(elements) * data::bytes_of(tensor.type);
}

}  // namespace
}  // namespace lockstep

using lockstep::data::BatchTensor;

// All names and tensors first: the fields point to them.
ls_batch_handle::ls_batch_handle(const lockstep::wire::DataSpec& job,
                                 std::shared_ptr<const lockstep::data::Batch> batch)
    : batch_(std::move(batch)) {
  const lockstep::data::SampleShape& shape = batch_->shape;
  const size_t most = shape.fields == nullptr ? 2 : shape.fields->specs().size() + 1;
  names_.reserve(most);
  tensors_.reserve(most);
  add(job.inputs_size() > 0 ? job.inputs(0) : "", LS_INPUT,
      input_tensor(shape, batch_->inputs(), batch_->samples));
  const BatchTensor label = label_tensor(shape, batch_->labels, batch_->samples);
  if (shape.fields == nullptr) {
    add("", LS_TARGET, label);
    return;
  }
  for (size_t i = 0; i < shape.fields->specs().size(); ++i) {
    const lockstep::data::FieldSpec& spec = shape.fields->specs()[i];
    add(spec.name, lockstep::role_of(spec.role),
        spec.is_label ? label : field_tensor(shape, batch_->labels, batch_->samples, i));
  }
}

void ls_batch_handle::add(std::string name, ls_field_role role, BatchTensor tensor) {
  const std::string& kept_name = names_.emplace_back(std::move(name));
  const BatchTensor& kept = tensors_.emplace_back(std::move(tensor));
  fields_.push_back({.name = kept_name.c_str(),
                     .shape = kept.sizes.data(),
                     .data = const_cast<std::byte*>(kept.data),
                     .bytes = lockstep::span_bytes(kept),
                     .sample_stride = kept.sample_stride,
                     .dims = static_cast<uint32_t>(kept.sizes.size()),
                     .role = static_cast<uint8_t>(role),
                     .dtype = static_cast<uint8_t>(lockstep::dtype_of(kept.type))});
}
