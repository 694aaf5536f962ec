// A TorchScript file as a model. Its parameters and statistics are the engine's tensors, set once
// into the module's places.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>

#include <stdexcept>
#include <utility>

#include "worker/model/exported_program/roles.h"
#include "worker/model/model_file.h"
#include "worker/torch/model/builtin.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/random_scope.h"
#include "worker/torch/model/script_module.h"
#include "worker/torch/model/script_parts.h"

namespace lockstep {
namespace {

class TorchScript final : public Model {
 public:
  TorchScript(std::string who, std::string content, ScriptModule module, ScriptParts parts,
              const data::SampleShape& shape, uint32_t classes)
      : Model(parts.layout),
        who_(std::move(who)),
        content_(std::move(content)),
        shape_(shape),
        classes_(classes),
        module_(std::move(module)),
        parts_(std::move(parts)),
        parameters_(parts_.parameters.size()),
        buffers_(parts_.statistics.size()) {
    for (const ScriptTensor& t : parts_.statistics) shapes_.push_back(t.get().sizes().vec());
    remember_constants();
  }

  Status move_to(at::Device where) override {
    const std::string content = std::exchange(content_, {});
    if (where.is_cpu()) return Status::ok();
    try {
      module_.load_on(content, where);
    } catch (const std::exception& error) {
      return {Code::kConfig, who_ + " cannot be loaded on " + where.str() + ": " + one_line(error)};
    }
    parameters_.assign(parameters_.size(), {});
    buffers_.assign(buffers_.size(), {});
    remember_constants();
    return Status::ok();
  }

  // The scope's lock makes the module this thread's, too.
  ModelOutput forward(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                      std::span<const at::Tensor> buffers, const ForwardMode& mode) const override {
    const RandomScope random(mode.dropout_key, inputs.x.device());
    bind(parameters, buffers);
    if (!mode.training) set_counters(mode.counters);
    ModelOutput out = lent_.with(inputs, who_, [&](const ModelInputs& lent) {
      return output_of(run(lent, mode.training), lent.x);
    });
    take_statistics(buffers);
    check_constants();
    return out;
  }
  void end_trial() { lent_.end_trial(); }

 private:
  ModelOutput output_of(const ScriptOutputs& outputs, const at::Tensor& x) const {
    if (layout().own_loss) return own_output(taken(outputs), x, who_, layout().own_loss->metrics);
    const at::Tensor& logits = outputs.front().second;
    if (const std::string wrong = wrong_output(logits, x, shape_, classes_); !wrong.empty())
      throw std::runtime_error(who_ + " " + wrong);
    return {.logits = logits};
  }

  OwnOutputs taken(const ScriptOutputs& outputs) const {
    const auto of = [&](const std::string& name) {
      const auto found = find_output(outputs, name);
      if (found != outputs.end()) return found->second;
      throw std::runtime_error(who_ + " gives no \"" + name +
                               "\" here, but did in the trial at the start; a forward must always "
                               "give the same names");
    };
    if (outputs.size() == 1 && outputs[0].first.empty())
      return {.losses = outputs[0].second, .weights = {}, .metrics = {}};
    OwnOutputs own{.losses = of(exported::kLossName), .weights = {}, .metrics = {}};
    if (layout().own_loss->has_weights) own.weights = of(exported::kWeightName);
    for (const std::string& name : layout().own_loss->metrics) own.metrics.push_back(of(name));
    return own;
  }

  ScriptOutputs run(const ModelInputs& inputs, bool training) const {
    try {
      return module_.forward(script_inputs(shape_, inputs, module_.inputs()), training);
    } catch (const std::exception& error) {
      throw std::runtime_error(who_ + " fails: " + one_line(error));
    }
  }

  void bind(std::span<const at::Tensor> parameters, std::span<const at::Tensor> buffers) const {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters_[i].is_same(parameters[i])) continue;
      parameters_[i] = parameters[i];
      parts_.parameters[i].set(parameters[i]);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers_[i].is_same(buffers[i])) continue;
      buffers_[i] = buffers[i];
      parts_.statistics[i].set(buffers[i].view(shapes_[i]));
    }
  }

  // In training each forward counts in the module, and nothing reads it.
  void set_counters(std::span<const int64_t> counters) const {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < parts_.counters.size(); ++i) {
      const int64_t count = counters.empty() ? layout().step_counters[i].initial : counters[i];
      parts_.counters[i].set(at::full_like(parts_.counters[i].get(), count));
    }
  }

  // Most are changed in place, and then they are there already.
  void take_statistics(std::span<const at::Tensor> buffers) const {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const at::Tensor now = parts_.statistics[i].get();
      if (now.is_alias_of(buffers[i])) continue;
      at::Tensor view = buffers[i].view(shapes_[i]);
      view.copy_(now);
      parts_.statistics[i].set(view);
    }
  }

  void remember_constants() {
    constants_.clear();
    for (const ScriptTensor& t : parts_.constants)
      constants_.emplace_back(t.get(), t.get()._version());
  }

  void check_constants() const {
    for (size_t i = 0; i < constants_.size(); ++i) {
      const at::Tensor& now = parts_.constants[i].get();
      if (now.is_same(constants_[i].first) && now._version() == constants_[i].second) continue;
      throw std::runtime_error(who_ + " changes its tensor " + parts_.constants[i].name() +
                               ", which it did not change in the trial at the start; a tensor must "
                               "change in every step or never");
    }
  }

  const std::string who_;
  std::string content_;  // of the file, until move_to()
  const data::SampleShape shape_;
  const uint32_t classes_;
  mutable ScriptModule module_;
  const ScriptParts parts_;
  std::vector<std::vector<int64_t>> shapes_;  // of the statistics in the script
  std::vector<std::pair<at::Tensor, uint32_t>> constants_;
  mutable std::vector<at::Tensor> parameters_;  // that the module's places hold
  mutable std::vector<at::Tensor> buffers_;
  LentInputs lent_;
};

Result<ScriptModule> load(const std::string& who, const std::string& content) {
  try {
    return ScriptModule(content);
  } catch (const std::exception& error) {
    return Status(Code::kConfig,
                  who + " is not a complete TorchScript file: " + one_line(error) +
                      "; write it with torch.jit.save(torch.jit.script(model), ...)");
  }
}

Result<ScriptParts> examine(const std::string& who, ScriptModule& module,
                            const data::SampleShape& shape, uint32_t classes) {
  try {
    auto parts = examine_script(module, shape, classes);
    if (!parts.is_ok()) return Status(parts.status().code(), who + " " + parts.status().message());
    return parts;
  } catch (const std::exception& error) {
    return Status(Code::kConfig,
                  who + " fails on samples in the shape of the training data: " + one_line(error));
  }
}

Result<std::unique_ptr<Model>> make_torchscript(const wire::ModelSpec& spec,
                                                const data::SampleShape& shape, uint32_t classes) {
  const std::string who = "the TorchScript file " + spec.path();
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelFile file, read_model_file(spec.path()));
  if (!spec.sha256().empty())
    LOCKSTEP_RETURN_IF_ERROR(check_model_hash(spec.path(), spec.sha256(), file.sha256));
  LOCKSTEP_ASSIGN_OR_RETURN(ScriptModule module, load(who, file.content));
  LOCKSTEP_ASSIGN_OR_RETURN(ScriptParts parts, examine(who, module, shape, classes));
  auto model = std::make_unique<TorchScript>(who, file.content, std::move(module), std::move(parts),
                                             shape, classes);
  LOCKSTEP_RETURN_IF_ERROR(check_start(*model, who, shape, classes));
  model->end_trial();
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

constinit const ModelBuilder kTorchscriptBuilder{"torchscript", make_torchscript};

}  // namespace lockstep
