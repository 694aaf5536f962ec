#include <ATen/ops/from_blob.h>

#include <string_view>
#include <vector>

#include "comm/base/text/nearest.h"
#include "comm/run/job/loss_kind.h"
#include "comm/run/job/models/model_table.h"
#include "data/dataset/batch_tensors.h"
#include "worker/torch/model/builtin.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

Status check_samples(const ModelRow& row, const data::SampleShape& shape) {
  const std::string name(row.name);
  if (shape.has_positions && !row.tells_documents_apart) {
    return {Code::kUsage,
            "data.documents is pack, but only " + models_of_packed_documents() +
                " can tell the documents of a sequence apart; use pad with model.name " + name};
  }
  const bool is_of_program = row.name == "exported" || row.name == "torchscript";
  if (shape.depth > 0 && !is_of_program)
    return {Code::kUsage, "model.name is " + name +
                              ", which takes images, but the samples are volumes of (C, D, H, W); "
                              "take model.name exported or torchscript"};
  if (shape.has_ids() && !is_of_program)
    return {Code::kUsage, "model.name is " + name +
                              ", but the first of data.inputs is rows of ids, which only programs "
                              "take; take model.name exported or torchscript"};
  const bool takes_tokens = row.takes == ModelTakes::kTokens;
  if (row.takes == ModelTakes::kEither || shape.is_sequence() == takes_tokens) return Status::ok();
  return {Code::kUsage, "model.name is " + name + ", which does not fit the data: " +
                            (shape.is_sequence() ? "these are tokens, for " + models_of_tokens()
                                                 : "these are images, not for " + name)};
}

// Models that are built in, and plug-ins, take one input.
Status check_fields(const ModelRow& row, const data::SampleShape& shape) {
  if (shape.fields == nullptr || row.name == "exported" || row.name == "torchscript")
    return Status::ok();
  const auto input = shape.fields->find(data::FieldRole::kInput);
  if (!input) return Status::ok();
  return {Code::kUsage, "model.name is " + std::string(row.name) + ", which takes one input, but " +
                            "data.inputs also names " + shape.fields->specs()[*input].name +
                            "; leave it out, or take model.name exported"};
}

at::ScalarType torch_type(data::FieldType type) {
  if (type == data::FieldType::kU8) return at::kByte;
  return type == data::FieldType::kI64 ? at::kLong : at::kFloat;
}

at::Tensor view_of(const data::BatchTensor& tensor, at::Device where) {
  std::vector<int64_t> strides(tensor.sizes.size(), 1);
  for (size_t d = strides.size() - 1; d > 1; --d) strides[d - 1] = strides[d] * tensor.sizes[d];
  strides[0] = tensor.sample_stride;
  return at::for_blob(const_cast<std::byte*>(tensor.data), tensor.sizes)
      .strides(strides)
      .options(at::TensorOptions(where).dtype(torch_type(tensor.type)))
      .target_device(where)
      .make_tensor();
}

Status unknown_model(const std::string& name) {
  const std::vector<std::string_view> names = model_names();
  return {Code::kUsage, "model.name is '" + name + "', which is not known; it can be " +
                            join_names(names) + did_you_mean(name, names)};
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const wire::ModelSpec& spec,
                                          const data::SampleShape& shape, uint32_t classes) {
  if (!(spec.dropout() >= 0 && spec.dropout() < 1)) {
    return Status(Code::kUsage, "model.dropout must be at least 0 and below 1, not " +
                                    std::to_string(spec.dropout()));
  }
  const ModelRow* row = find_model(spec.name());
  if (row == nullptr) return unknown_model(spec.name());
  if (row->is_script)
    return Status(Code::kUsage,
                  "model.name is script, which a process in Python trains, and nothing "
                  "else can; start it with lockstep run SCRIPT.py");
  if (spec.recompute() && row->name != "gpt2")
    return Status(Code::kUsage, "model.recompute is true, which only gpt2 can do, not model.name " +
                                    spec.name() +
                                    "; leave it out, and raise train.slots to save memory");
  LOCKSTEP_RETURN_IF_ERROR(check_samples(*row, shape));
  LOCKSTEP_RETURN_IF_ERROR(check_fields(*row, shape));
  for (const ModelBuilder* builder : kBuilders) {
    if (builder->name == row->name) return builder->build(spec, shape, classes);
  }
  return Status(Code::kInternal, "nothing builds the model " + spec.name());
}

uint32_t outputs_of(const wire::TrainSpec& train, const data::SampleShape& shape,
                    uint32_t classes) {
  if (loss_kind(train) == LossKind::kCrossEntropy) return classes;
  if (shape.fields == nullptr) return 1;
  const auto target = shape.fields->find(data::FieldRole::kTarget);
  return target ? static_cast<uint32_t>(shape.fields->specs()[*target].elements()) : 1;
}

at::Tensor model_input(const data::SampleShape& shape, const void* inputs, uint64_t batch,
                       at::Device where) {
  return view_of(data::input_tensor(shape, inputs, batch), where);
}

at::Tensor label_input(const data::SampleShape& shape, const int64_t* labels, uint64_t batch,
                       at::Device where) {
  return view_of(data::label_tensor(shape, labels, batch), where);
}

FieldTensors field_inputs(const data::SampleShape& shape, const int64_t* labels, uint64_t batch,
                          at::Device where) {
  FieldTensors out;
  if (shape.fields == nullptr) return out;
  const data::FieldList& fields = *shape.fields;
  for (size_t i = 0; i < fields.specs().size(); ++i) {
    at::Tensor& field = out.all.emplace_back();
    if (fields.specs()[i].is_label) continue;
    field = view_of(data::field_tensor(shape, labels, batch, i), where)
                .clone(at::MemoryFormat::Contiguous);
  }
  if (const auto target = fields.find(data::FieldRole::kTarget)) out.target = out.all[*target];
  if (const auto weight = fields.find(data::FieldRole::kWeight)) out.weight = out.all[*weight];
  return out;
}

}  // namespace lockstep
