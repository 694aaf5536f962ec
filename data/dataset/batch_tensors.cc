#include "data/dataset/batch_tensors.h"

namespace lockstep::data {
namespace {

BatchTensor packed(const void* data, FieldType type, uint64_t samples,
                   const std::vector<int64_t>& of_sample) {
  BatchTensor tensor{static_cast<const std::byte*>(data), type, {static_cast<int64_t>(samples)}, 1};
  for (const int64_t size : of_sample) {
    tensor.sizes.push_back(size);
    tensor.sample_stride *= size;
  }
  return tensor;
}

}  // namespace

BatchTensor input_tensor(const SampleShape& shape, const void* inputs, uint64_t samples) {
  const auto tokens = static_cast<int64_t>(shape.tokens);
  if (shape.is_sequence() && shape.has_positions)
    return packed(inputs, FieldType::kI64, samples, {2, tokens});
  if (shape.is_sequence()) return packed(inputs, FieldType::kI64, samples, {tokens});
  return packed(inputs, shape.has_ids() ? FieldType::kI64 : FieldType::kF32, samples,
                shape.model_sizes());
}

BatchTensor label_tensor(const SampleShape& shape, const int64_t* labels, uint64_t samples) {
  if (!shape.is_sequence()) return packed(labels, FieldType::kI64, samples, {});
  return packed(labels, FieldType::kI64, samples, {static_cast<int64_t>(shape.labels())});
}

BatchTensor field_tensor(const SampleShape& shape, const int64_t* labels, uint64_t samples,
                         size_t field) {
  const FieldList& fields = *shape.fields;
  const FieldSpec& spec = fields.specs()[field];
  const auto* records = reinterpret_cast<const std::byte*>(labels + samples * shape.labels());
  BatchTensor tensor = packed(records + fields.offset(field), spec.type, samples,
                              {spec.dims.begin(), spec.dims.end()});
  tensor.sample_stride = static_cast<int64_t>(fields.record_bytes() / bytes_of(spec.type));
  return tensor;
}

}  // namespace lockstep::data
