#include "worker/torch/replay/batch_file.h"

#include "comm/base/file.h"
#include "comm/run/checkpoint/safetensors.h"

namespace lockstep {
namespace {

template <typename T>
StateTensor tensor_of(const char* name, DType dtype, std::vector<int64_t> shape,
                      const std::vector<T>& values) {
  StateTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.data = reinterpret_cast<std::byte*>(const_cast<T*>(values.data()));  // only read
  tensor.bytes = values.size() * sizeof(T);
  return tensor;
}

// Further inputs, targets and weights, by their names after "fields.".
void add_fields(const data::SampleShape& shape, const LookedAt& seen,
                std::vector<StateTensor>* tensors) {
  for (size_t i = 0; shape.fields != nullptr && i < shape.fields->specs().size(); ++i) {
    const data::FieldSpec& field = shape.fields->specs()[i];
    if (field.is_label) continue;
    std::vector<int64_t> sizes{static_cast<int64_t>(seen.samples.size())};
    sizes.insert(sizes.end(), field.dims.begin(), field.dims.end());
    DType dtype = DType::kF32;
    if (field.type != data::FieldType::kF32)
      dtype = field.type == data::FieldType::kU8 ? DType::kU8 : DType::kI64;
    StateTensor tensor = tensor_of("", dtype, std::move(sizes), seen.fields[i]);
    tensor.name = "fields." + field.name;
    tensors->push_back(std::move(tensor));
  }
}

}  // namespace

Status write_batch(const std::string& path, const LookedAt& seen, const data::SampleShape& shape,
                   uint32_t classes) {
  std::vector<int64_t> samples;
  std::vector<int64_t> positions;
  std::vector<int64_t> slots;
  std::vector<float> losses;
  std::vector<int64_t> other_labels;
  std::vector<float> shares;
  for (const ReplayedSample& sample : seen.samples) {
    samples.push_back(static_cast<int64_t>(sample.sample));
    positions.push_back(static_cast<int64_t>(sample.position));
    slots.push_back(sample.slot);
    losses.push_back(sample.loss);
    other_labels.push_back(sample.other_label);
    shares.push_back(sample.share);
  }
  const auto batch = static_cast<int64_t>(seen.samples.size());
  std::vector<StateTensor> tensors{tensor_of("samples", DType::kI64, {batch}, samples),
                                   tensor_of("positions", DType::kI64, {batch}, positions),
                                   tensor_of("slots", DType::kI64, {batch}, slots),
                                   tensor_of("loss", DType::kF32, {batch}, losses)};
  if (shape.is_sequence()) {
    tensors.push_back(tensor_of("tokens", DType::kI64, {batch, shape.tokens}, seen.tokens));
    tensors.push_back(tensor_of("labels", DType::kI64, {batch, shape.tokens}, seen.labels));
  } else {
    std::vector<int64_t> sizes = shape.model_sizes();
    sizes.insert(sizes.begin(), batch);
    const char* name = shape.is_row ? "rows" : "images";
    tensors.push_back(shape.has_ids()
                          ? tensor_of("tokens", DType::kI64, std::move(sizes), seen.tokens)
                          : tensor_of(name, DType::kF32, std::move(sizes), seen.images));
    if (!seen.logits.empty())
      tensors.push_back(tensor_of("logits", DType::kF32, {batch, classes}, seen.logits));
    if (shape.has_label())
      tensors.push_back(tensor_of("labels", DType::kI64, {batch}, seen.labels));
    add_fields(shape, seen, &tensors);
  }
  if (seen.are_mixed) {
    tensors.push_back(tensor_of("other_labels", DType::kI64, {batch}, other_labels));
    tensors.push_back(tensor_of("shares", DType::kF32, {batch}, shares));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsPlan plan, plan_safetensors(tensors, {}));
  std::string bytes = plan.prefix;
  for (const StateTensor* tensor : plan.order) {
    bytes.append(reinterpret_cast<const char*>(tensor->data), tensor->bytes);
  }
  return replace_file(path, bytes);
}

}  // namespace lockstep
