// A plug-in (plugin.h) as a model.
#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "comm/base/limits.h"
#include "worker/model/exported_program/roles.h"
#include "worker/model/model_file.h"
#include "worker/model/plugin.h"
#include "worker/torch/model/builtin.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/random_scope.h"

namespace lockstep {
namespace {

struct Functions {
  decltype(&lockstep_model_describe) describe = nullptr;
  decltype(&lockstep_model_forward) forward = nullptr;
  decltype(&lockstep_model_losses) losses = nullptr;  // null: the model gives logits
};

// The results of lockstep_model_losses().
struct PluginLosses {
  OwnOutputs outputs;
  std::vector<std::string> names;  // of the metrics
};

// The plug-in's instance of one model; the code itself stays in the process, since LibTorch may
// hold on to it.
class Instance {
 public:
  Instance(void* instance, void (*free_instance)(void*))
      : instance_(instance), free_instance_(free_instance) {}
  ~Instance() {
    if (free_instance_ != nullptr) free_instance_(instance_);
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  void* get() const { return instance_; }

 private:
  void* instance_;
  void (*free_instance_)(void*);
};

std::vector<const void*> pointers(std::span<const at::Tensor> tensors) {
  std::vector<const void*> out;
  for (const at::Tensor& t : tensors) out.push_back(&t);
  return out;
}

template <typename Call>
void guarded(const std::string& who, const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    throw std::runtime_error(who + " fails: " + one_line(error));
  } catch (...) {
    throw std::runtime_error(who + " fails with an exception that is no std::exception");
  }
}

// REQUIRES: the plug-in has a loss of its own.
PluginLosses losses_of(const std::string& who, const Functions& functions, const Instance& instance,
                       const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                       std::span<const at::Tensor> buffers, bool training) {
  const std::vector<const void*> parameter_pointers = pointers(parameters);
  const std::vector<const void*> buffer_pointers = pointers(buffers);
  PluginLosses out;
  std::array<at::Tensor, LOCKSTEP_METRICS> values;
  LockstepModelLosses call{};
  call.instance = instance.get();
  call.input = &inputs.x;
  call.labels = &inputs.labels;
  call.parameters = parameter_pointers.data();
  call.buffers = buffer_pointers.data();
  call.training = training;
  call.losses = &out.outputs.losses;
  call.weights = &out.outputs.weights;
  for (size_t i = 0; i < values.size(); ++i) call.metrics[i] = &values[i];
  guarded(who, [&] { functions.losses(&call); });
  for (size_t i = 0; i < values.size() && values[i].defined(); ++i) {
    out.outputs.metrics.push_back(values[i]);
    out.names.emplace_back(call.metric_names[i] == nullptr ? "" : call.metric_names[i]);
  }
  return out;
}

class Plugin final : public Model {
 public:
  Plugin(std::string who, Functions functions, std::unique_ptr<Instance> instance,
         ModelLayout layout, const data::SampleShape& shape, uint32_t classes)
      : Model(std::move(layout)),
        who_(std::move(who)),
        functions_(functions),
        instance_(std::move(instance)),
        shape_(shape),
        classes_(classes) {}

  ModelOutput forward(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                      std::span<const at::Tensor> buffers, const ForwardMode& mode) const override {
    const RandomScope random(mode.dropout_key, inputs.x.device());
    return lent_.with(inputs, who_, [&](const ModelInputs& lent) {
      return functions_.losses != nullptr ? losses(lent, parameters, buffers, mode.training)
                                          : logits(lent.x, parameters, buffers, mode.training);
    });
  }
  void end_trial() { lent_.end_trial(); }

 private:
  ModelOutput losses(const ModelInputs& inputs, std::span<const at::Tensor> parameters,
                     std::span<const at::Tensor> buffers, bool training) const {
    PluginLosses given =
        losses_of(who_, functions_, *instance_, inputs, parameters, buffers, training);
    if (given.names != layout().own_loss->metrics ||
        given.outputs.weights.defined() != layout().has_weights())
      throw std::runtime_error(who_ + " gives other metrics than in the trial at the start");
    return own_output(std::move(given.outputs), inputs.x, who_, given.names);
  }

  ModelOutput logits(const at::Tensor& x, std::span<const at::Tensor> parameters,
                     std::span<const at::Tensor> buffers, bool training) const {
    const std::vector<const void*> parameter_pointers = pointers(parameters);
    const std::vector<const void*> buffer_pointers = pointers(buffers);
    at::Tensor out;
    LockstepModelForward call{.instance = instance_->get(),
                              .input = &x,
                              .parameters = parameter_pointers.data(),
                              .buffers = buffer_pointers.data(),
                              .training = training,
                              .output = &out};
    guarded(who_, [&] { functions_.forward(&call); });
    if (const std::string wrong = wrong_output(out, x, shape_, classes_); !wrong.empty())
      throw std::runtime_error(who_ + " " + wrong);
    return {.logits = out};
  }

  const std::string who_;
  const Functions functions_;
  const std::unique_ptr<Instance> instance_;
  const data::SampleShape shape_;
  const uint32_t classes_;
  LentInputs lent_;
};

ModelLayout& layout_of(LockstepModelDescription* model) {
  return *static_cast<ModelLayout*>(model->host);
}

void check_name(const char* name, const ModelLayout& layout) {
  if (name == nullptr || *name == '\0') throw std::runtime_error("a tensor has no name");
  const auto has_name = [name](const auto& spec) { return spec.name == name; };
  if (std::any_of(layout.parameters.begin(), layout.parameters.end(), has_name) ||
      std::any_of(layout.buffers.begin(), layout.buffers.end(), has_name))
    throw std::runtime_error("two tensors have the name " + std::string(name));
}

uint32_t add_parameter(LockstepModelDescription* model, const char* name, const int64_t* shape,
                       uint32_t dims, LockstepInit init, double value) {
  ModelLayout& layout = layout_of(model);
  check_name(name, layout);
  if (dims > limits::kTensorDims ||
      std::any_of(shape, shape + dims, [](int64_t n) { return n < 1; }))
    throw std::runtime_error("parameter " + std::string(name) +
                             " has a size below 1 or more than " +
                             std::to_string(limits::kTensorDims) + " dimensions");
  if (layout.parameters.size() >= limits::kTensors) throw std::runtime_error("too many parameters");
  ParameterSpec spec{.name = name, .shape = {shape, shape + dims}};
  if (init == LOCKSTEP_INIT_UNIFORM)
    spec.uniform_bound = value;
  else if (init == LOCKSTEP_INIT_NORMAL)
    spec.normal_std = value;
  else
    spec.constant = static_cast<float>(value);
  layout.parameters.push_back(std::move(spec));
  return static_cast<uint32_t>(layout.parameters.size()) - 1;
}

uint32_t add_buffer(LockstepModelDescription* model, const char* name, int64_t size,
                    float initial) {
  ModelLayout& layout = layout_of(model);
  check_name(name, layout);
  if (size < 1) throw std::runtime_error("buffer " + std::string(name) + " has a size below 1");
  if (layout.buffers.size() >= limits::kTensors) throw std::runtime_error("too many buffers");
  layout.buffers.push_back({name, size, initial});
  return static_cast<uint32_t>(layout.buffers.size()) - 1;
}

Result<Functions> open(const std::string& who, const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    return Status(Code::kConfig, who + " cannot be loaded: " + ::dlerror() +
                                     "; build it as a shared library against LibTorch " +
                                     TORCH_VERSION + " (worker/model/PLUGIN.md)");
  Functions functions;
  functions.describe =
      reinterpret_cast<decltype(functions.describe)>(::dlsym(library, "lockstep_model_describe"));
  functions.forward =
      reinterpret_cast<decltype(functions.forward)>(::dlsym(library, "lockstep_model_forward"));
  functions.losses =
      reinterpret_cast<decltype(functions.losses)>(::dlsym(library, "lockstep_model_losses"));
  if (functions.describe != nullptr && functions.forward != nullptr) return functions;
  return Status(Code::kConfig, who + " does not export " +
                                   (functions.describe == nullptr ? "lockstep_model_describe"
                                                                  : "lockstep_model_forward") +
                                   "; include worker/model/plugin.h and define it");
}

Status check_handshake(const std::string& who, const LockstepModelDescription& model) {
  const auto refused = [&who](const std::string& what) {
    return Status(Code::kConfig, who + what);
  };
  if (model.plugin_torch == nullptr)
    return refused(" makes no handshake; call lockstep_handshake(model, TORCH_VERSION) first");
  if (model.plugin_abi != LOCKSTEP_PLUGIN_ABI)
    return refused(" was built for version " + std::to_string(model.plugin_abi) +
                   " of plugin.h, this worker has version " + std::to_string(LOCKSTEP_PLUGIN_ABI) +
                   "; build it again with this Lockstep's header");
  if (std::string_view(model.plugin_torch) != TORCH_VERSION)
    return refused(" was built with LibTorch " + std::string(model.plugin_torch) +
                   ", this worker with " + TORCH_VERSION + "; build it again with that one");
  return Status::ok();
}

struct Described {
  ModelLayout layout;
  std::unique_ptr<Instance> instance;
};

Result<Described> describe(const std::string& who, const Functions& functions,
                           const data::SampleShape& shape, uint32_t classes) {
  Described out;
  LockstepModelDescription model{};
  model.host_abi = LOCKSTEP_PLUGIN_ABI;
  model.host_torch = TORCH_VERSION;
  model.channels = shape.channels;
  model.height = shape.height;
  model.width = shape.width;
  model.tokens = shape.tokens;
  model.classes = classes;
  model.add_parameter = add_parameter;
  model.add_buffer = add_buffer;
  model.host = &out.layout;
  std::string thrown;
  try {
    functions.describe(&model);
  } catch (const std::exception& error) {
    thrown = one_line(error);
  } catch (...) {
    thrown = "an exception that is no std::exception";
  }
  out.instance = std::make_unique<Instance>(model.instance, model.free_instance);
  if (!thrown.empty()) return Status(Code::kConfig, who + " refuses these samples: " + thrown);
  LOCKSTEP_RETURN_IF_ERROR(check_handshake(who, model));
  if (out.layout.parameters.empty())
    return Status(Code::kConfig, who + " has no parameters to train; call add_parameter");
  out.layout.batch_norm_values = model.values_per_batch_norm;
  out.layout.batch_norm_layer = who;
  return out;
}

// The own loss, found with a few random samples.
Result<OwnLoss> own_loss_of(const std::string& who, const Functions& functions,
                            const Described& described, const data::SampleShape& shape,
                            uint32_t classes) {
  constexpr uint64_t kSamples = 2;
  constexpr uint64_t kKey = 1;
  try {
    const RandomScope random(kKey, at::kCPU);
    const InitialTensors initial = initial_tensors(described.layout);
    const PluginLosses given = losses_of(who, functions, *described.instance,
                                         {.x = sample_input(shape, kSamples, classes),
                                          .labels = sample_labels(shape, kSamples, classes)},
                                         initial.parameters, initial.buffers, /*training=*/true);
    const Status names = exported::check_metric_names(given.names);
    if (!names.is_ok()) return Status(names.code(), who + " " + names.message());
    return OwnLoss{.takes_labels = true,
                   .has_weights = given.outputs.weights.defined(),
                   .metrics = given.names};
  } catch (const std::exception& error) {
    return Status(Code::kConfig, one_line(error));
  }
}

Result<std::unique_ptr<Model>> make_plugin(const wire::ModelSpec& spec,
                                           const data::SampleShape& shape, uint32_t classes) {
  const std::string who = "the plug-in " + spec.path();
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelFile file, read_model_file(spec.path()));
  if (!spec.sha256().empty())
    LOCKSTEP_RETURN_IF_ERROR(check_model_hash(spec.path(), spec.sha256(), file.sha256));
  LOCKSTEP_ASSIGN_OR_RETURN(const Functions functions, open(who, spec.path()));
  LOCKSTEP_ASSIGN_OR_RETURN(Described described, describe(who, functions, shape, classes));
  if (functions.losses != nullptr && shape.fields != nullptr)
    for (const data::FieldSpec& field : shape.fields->specs())
      if (field.role == data::FieldRole::kTarget && !field.is_label)
        return Status(Code::kUsage,
                      who + " gives losses for one label a sample, but data.targets " +
                          "also holds " + field.name +
                          "; name one target of classes, or take model.name exported");
  if (functions.losses != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(described.layout.own_loss,
                              own_loss_of(who, functions, described, shape, classes));
  }
  auto model = std::make_unique<Plugin>(who, functions, std::move(described.instance),
                                        std::move(described.layout), shape, classes);
  LOCKSTEP_RETURN_IF_ERROR(check_start(*model, who, shape, classes));
  model->end_trial();
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

constinit const ModelBuilder kPluginBuilder{"plugin", make_plugin};

}  // namespace lockstep
