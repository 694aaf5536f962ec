#include <ATen/ops/from_blob.h>

#include <string_view>
#include <vector>

#include "comm/base/text/nearest.h"
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
  const bool takes_tokens = row.takes == ModelTakes::kTokens;
  if (row.takes == ModelTakes::kEither || shape.is_sequence() == takes_tokens) return Status::ok();
  return {Code::kUsage, "model.name is " + name + ", which does not fit the data: " +
                            (shape.is_sequence() ? "these are tokens, for " + models_of_tokens()
                                                 : "these are images, not for " + name)};
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
  LOCKSTEP_RETURN_IF_ERROR(check_samples(*row, shape));
  for (const ModelBuilder* builder : kBuilders) {
    if (builder->name == row->name) return builder->build(spec, shape, classes);
  }
  return Status(Code::kInternal, "nothing builds the model " + spec.name());
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
  if (shape.is_row) return view({n, shape.channels}, at::kFloat);
  return view({n, shape.channels, shape.height, shape.width}, at::kFloat);
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

}  // namespace lockstep
