#include "worker/torch/model/script_parts.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "worker/model/exported_program/roles.h"
#include "worker/torch/model/examination.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/random_scope.h"

namespace lockstep {
namespace {

constexpr uint64_t kAnyKey = 1;

Status refused(const std::string& what) {
  return {Code::kConfig, what};
}

class ExaminedScript final : public ExaminedModel {
 public:
  ExaminedScript(ScriptModule& module, const data::SampleShape& shape, uint32_t classes)
      : module_(module), shape_(shape), classes_(classes) {
    for (const ScriptTensor& t : module.tensors())
      is_trained_.push_back(t.is_parameter() && t.get().requires_grad());
    for (const ScriptValue& v : module.values()) values_.push_back(v.get());
  }

  size_t tensors() const override { return is_trained_.size(); }
  std::string name(size_t i) const override { return module_.tensors()[i].name(); }
  bool is_trained(size_t i) const override { return is_trained_[i]; }
  at::Tensor get(size_t i) const override { return module_.tensors()[i].get(); }
  void set(size_t i, const at::Tensor& value) override { module_.tensors()[i].set(value); }
  at::Tensor train(uint64_t batch) override {
    const RandomScope random(kAnyKey, at::kCPU);
    last_ = module_.forward(
        script_inputs(shape_, sample_inputs(shape_, batch, classes_), module_.inputs()),
        /*training=*/true);
    const auto loss = find_output(last_, exported::kLossName);
    return loss == last_.end() ? last_.front().second : loss->second;
  }
  // The own loss in the last output.
  Result<std::optional<OwnLoss>> own_loss() const;

  Status check_parameters() const;
  Status check_values() const;

 private:
  ScriptModule& module_;
  const data::SampleShape& shape_;
  const uint32_t classes_;
  std::vector<bool> is_trained_;
  std::vector<c10::IValue> values_;  // as the file has them
  ScriptOutputs last_;
};

Result<std::optional<OwnLoss>> ExaminedScript::own_loss() const {
  const bool takes_labels = takes_targets(shape_, module_.inputs());
  if (last_.size() == 1 && last_[0].first.empty())
    return takes_labels ? std::optional(OwnLoss{.takes_labels = true, .metrics = {}})
                        : std::optional<OwnLoss>();
  OwnLoss own{.takes_labels = takes_labels, .metrics = {}};
  if (find_output(last_, exported::kLossName) == last_.end())
    return refused("gives a dictionary without \"loss\"; put the loss of each sample there");
  for (const auto& [name, tensor] : last_) {
    if (name == exported::kWeightName) own.has_weights = true;
    if (name != exported::kWeightName && name != exported::kLossName) own.metrics.push_back(name);
  }
  LOCKSTEP_RETURN_IF_ERROR(exported::check_metric_names(own.metrics));
  return std::optional(std::move(own));
}

Status ExaminedScript::check_parameters() const {
  const auto& all = module_.tensors();
  bool has_some = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_trained_[i]) continue;
    has_some = true;
    const ScriptTensor& t = all[i];
    const at::Tensor& value = t.get();
    if (value.scalar_type() != at::kFloat || value.layout() != at::kStrided || value.numel() == 0)
      return refused("has a parameter " + t.name() + " of type " + type_of(value) + " with " +
                     std::to_string(value.numel()) +
                     " elements; parameters must be dense float32: call .float() before saving "
                     "(train.precision computes in shorter types)");
    for (const ScriptTensor& other : all) {
      if (&other == &t || !t.overlaps(other)) continue;
      return refused("has tensors " + t.name() + " and " + other.name() +
                     " that share a part of their memory; make one of them a copy");
    }
  }
  if (has_some) return Status::ok();
  return refused(
      "has no parameters to train; save it without torch.jit.freeze, and with "
      "requires_grad where something is to be learnt");
}

// After the first forward.
Status ExaminedScript::check_values() const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const ScriptValue& v = module_.values()[i];
    if (v.get().tagKind() == values_[i].tagKind() && v.get() == values_[i]) continue;
    return refused("changes its attribute " + v.name +
                   " in forward, which would not survive a restart; keep such state in a buffer");
  }
  return Status::ok();
}

std::vector<ScriptTensor> taken(const ScriptModule& module, const std::vector<size_t>& indices) {
  std::vector<ScriptTensor> out;
  for (const size_t i : indices) out.push_back(module.tensors()[i]);
  return out;
}

ModelLayout layout_of(const ScriptParts& parts) {
  ModelLayout layout;
  for (const ScriptTensor& t : parts.parameters)
    layout.parameters.push_back({.name = t.name(),
                                 .shape = t.get().sizes().vec(),
                                 .values = values_of(t.get()),
                                 .tied_names = t.tied_names()});
  for (const ScriptTensor& t : parts.statistics)
    layout.buffers.push_back({.name = t.name(),
                              .size = t.get().numel(),
                              .values = values_of(t.get()),
                              .shape = t.get().sizes().vec()});
  for (const ScriptTensor& t : parts.counters)
    layout.step_counters.push_back({t.name(), t.get().item<int64_t>()});
  for (const ScriptTensor& t : parts.constants) {
    const char* type = safetensors_type(t.get().scalar_type());
    if (type == nullptr || t.get().layout() != at::kStrided) continue;
    std::vector<std::string> names = {t.name()};
    names.insert(names.end(), t.tied_names().begin(), t.tied_names().end());
    layout.constants.push_back({std::move(names), type, t.get().sizes().vec(), [value = t.get()] {
                                  const at::Tensor rows = value.detach().contiguous();
                                  const auto* bytes =
                                      static_cast<const uint8_t*>(rows.const_data_ptr());
                                  return std::vector<uint8_t>(bytes, bytes + rows.nbytes());
                                }});
  }
  return layout;
}

// kConfig unless forward() takes the job's inputs.
Status check_arguments(const data::SampleShape& shape, size_t count) {
  const exported::FieldNames names = exported::field_names(shape);
  const size_t all = shape.fields == nullptr ? 2 : 1 + names.names.size();
  if (count == all || count == 1 + size_t{names.inputs}) return Status::ok();
  return refused("takes " + std::to_string(count) + " arguments, but the job gives the batch" +
                 (names.inputs == 0 ? "" : ", " + std::to_string(names.inputs) + " more inputs") +
                 " and " + std::to_string(all - 1 - names.inputs) +
                 " targets; save a module whose forward takes all of them, or the inputs alone");
}

}  // namespace

ScriptOutputs::const_iterator find_output(const ScriptOutputs& outputs, const std::string& name) {
  return std::find_if(outputs.begin(), outputs.end(),
                      [&](const auto& output) { return output.first == name; });
}

std::vector<at::Tensor> script_inputs(const data::SampleShape& shape, const ModelInputs& inputs,
                                      size_t count) {
  std::vector<at::Tensor> out = {inputs.x};
  const size_t fields = shape.fields == nullptr ? 0 : shape.fields->specs().size();
  for (size_t i = 0; i < fields && out.size() < count; ++i) {
    const data::FieldSpec& field = shape.fields->specs()[i];
    if (field.role == data::FieldRole::kWeight) continue;
    const at::Tensor& tensor = field.is_label ? inputs.labels : inputs.fields.all[i];
    out.push_back(field.type == data::FieldType::kF32 ? tensor : tensor.to(at::kLong));
  }
  if (shape.fields == nullptr && out.size() < count) out.push_back(inputs.labels);
  return out;
}

bool takes_targets(const data::SampleShape& shape, size_t count) {
  return count > 1 + exported::field_names(shape).inputs;
}

Result<ScriptParts> examine_script(ScriptModule& module, const data::SampleShape& shape,
                                   uint32_t classes) {
  LOCKSTEP_RETURN_IF_ERROR(check_arguments(shape, module.inputs()));
  ExaminedScript script(module, shape, classes);
  LOCKSTEP_RETURN_IF_ERROR(script.check_parameters());
  const auto kinds = examine(script, {});
  LOCKSTEP_RETURN_IF_ERROR(script.check_values());
  if (!kinds.is_ok()) return kinds.status();
  ScriptParts parts{.parameters = taken(module, kinds->parameters),
                    .statistics = taken(module, kinds->statistics),
                    .counters = taken(module, kinds->counters),
                    .constants = taken(module, kinds->constants),
                    .layout = {}};
  parts.layout = layout_of(parts);
  LOCKSTEP_ASSIGN_OR_RETURN(parts.layout.own_loss, script.own_loss());
  if (!kinds->one_sample_error.empty()) {
    parts.layout.batch_norm_values = 1;
    parts.layout.batch_norm_layer = "the script (\"" + kinds->one_sample_error + "\")";
  }
  return parts;
}

}  // namespace lockstep
