#include "worker/torch/export/script_export.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <exception>
#include <map>

#include "comm/run/checkpoint/store.h"
#include "worker/model/model_file.h"
#include "worker/model/weights/weight_files.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/script_module.h"

namespace lockstep {
namespace {

at::Tensor tensor_of(const FileTensor& tensor) {
  const bool is_float = tensor.type->kind == 'f';
  return at::from_blob(const_cast<uint8_t*>(tensor.data), tensor.shape,
                       at::TensorOptions(is_float ? at::kFloat : at::kLong));
}

Status set_tensors(const ScriptModule& module, const WeightFiles& weights,
                   const std::string& path) {
  const at::NoGradGuard no_grad;
  std::map<std::string, const FileTensor*> left;
  for (const FileTensor& tensor : weights.tensors()) left[tensor.name] = &tensor;
  for (const ScriptTensor& place : module.tensors()) {
    const auto at = left.find(place.name());
    if (at == left.end()) continue;
    at::Tensor into = place.get();  // in place: tied tensors change with it
    const at::Tensor from = tensor_of(*at->second);
    if (from.numel() != into.numel())
      return {Code::kBadData,
              "the checkpoint has " + place.name() + " of another size than " + path};
    into.copy_(from.view(into.sizes()));  // running statistics are flat in a checkpoint
    left.erase(at);
  }
  if (left.empty()) return weights.unchanged();
  return {Code::kBadData,
          "the checkpoint has " + left.begin()->first + ", which " + path + " does not have"};
}

}  // namespace

Status export_script(const wire::ModelSpec& model, const std::string& checkpoint,
                     const std::string& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelFile source, read_model_file(model.path()));
  LOCKSTEP_RETURN_IF_ERROR(check_model_hash(model.path(), model.sha256(), source.sha256));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const WeightFiles weights,
      WeightFiles::open(checkpoint + "/" + std::string(kModelFile), WeightSource::kRun));
  try {
    ScriptModule module(source.content);
    LOCKSTEP_RETURN_IF_ERROR(set_tensors(module, weights, model.path()));
    module.save_for_evaluation(file);
    return Status::ok();
  } catch (const std::exception& error) {
    return {Code::kInternal, "cannot export " + model.path() + ": " + one_line(error)};
  }
}

}  // namespace lockstep
