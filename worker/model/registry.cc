#include <ATen/ops/from_blob.h>

#include <string_view>
#include <vector>

#include "comm/base/text/nearest.h"
#include "comm/wire/loss_kind.h"
#include "comm/wire/models/model_table.h"
#include "worker/model/builtin.h"
#include "worker/model/model.h"

namespace lockstep {
namespace {

const ModelBuilder* const kBuilders[] = {
    &kMlpBuilder,  &kCnnBuilder,         &kResnet18Builder, &kResnet50Builder,
    &kGpt2Builder, &kTorchscriptBuilder, &kPluginBuilder,   &kExportedBuilder,
};

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
  const auto n = static_cast<int64_t>(batch);
  const at::TensorOptions options(where);
  const auto view = [&](at::IntArrayRef sizes, at::ScalarType type) {
    return at::for_blob(const_cast<void*>(inputs), sizes)
        .options(options.dtype(type))
        .target_device(where)
        .make_tensor();
  };
  if (shape.is_sequence() && shape.has_positions) return view({n, 2, shape.tokens}, at::kLong);
  if (shape.is_sequence()) return view({n, shape.tokens}, at::kLong);
  std::vector<int64_t> sizes = shape.model_sizes();
  sizes.insert(sizes.begin(), n);
  return view(sizes, shape.has_ids() ? at::kLong : at::kFloat);
}

at::Tensor label_input(const data::SampleShape& shape, const int64_t* labels, uint64_t batch,
                       at::Device where) {
  std::vector<int64_t> sizes = {static_cast<int64_t>(batch)};
  if (shape.is_sequence()) sizes.push_back(static_cast<int64_t>(shape.labels()));
  return at::for_blob(const_cast<int64_t*>(labels), sizes)
      .options(at::TensorOptions(where).dtype(at::kLong))
      .target_device(where)
      .make_tensor();
}

FieldTensors field_inputs(const data::SampleShape& shape, const int64_t* labels, uint64_t batch,
                          at::Device where) {
  FieldTensors out;
  if (shape.fields == nullptr) return out;
  const data::FieldList& fields = *shape.fields;
  const auto* records = reinterpret_cast<const std::byte*>(labels + batch * shape.labels());
  for (size_t i = 0; i < fields.specs().size(); ++i) {
    const data::FieldSpec& spec = fields.specs()[i];
    at::Tensor& field = out.all.emplace_back();
    if (spec.is_label) continue;
    std::vector<int64_t> sizes = {static_cast<int64_t>(batch)};
    sizes.insert(sizes.end(), spec.dims.begin(), spec.dims.end());
    // From one record to the next, and row-major within a record.
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d > 1; --d) strides[d - 1] = strides[d] * sizes[d];
    strides[0] = static_cast<int64_t>(fields.record_bytes() / bytes_of(spec.type));
    field = at::for_blob(const_cast<std::byte*>(records + fields.offset(i)), sizes)
                .strides(strides)
                .options(at::TensorOptions(where).dtype(torch_type(spec.type)))
                .target_device(where)
                .make_tensor()
                .clone(at::MemoryFormat::Contiguous);
  }
  if (const auto target = fields.find(data::FieldRole::kTarget)) out.target = out.all[*target];
  if (const auto weight = fields.find(data::FieldRole::kWeight)) out.weight = out.all[*weight];
  return out;
}

}  // namespace lockstep
