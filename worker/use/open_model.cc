#include "worker/use/open_model.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "comm/wire/loss_kind.h"
#include "worker/engine/precision.h"
#include "worker/model/foreign.h"
#include "worker/model/weights/weight_files.h"
#include "worker/use/program_for_use.h"

namespace lockstep {
namespace {

// The weights of the last layer, whose rows are the classes; wte is gpt2's.
constexpr std::string_view kLastLayers[] = {"wte.weight", "fc.weight", "fc3.weight", "fc2.weight"};
constexpr int64_t kImagenetWindow = 7;

std::string kind_text(const data::SampleShape& shape) {
  if (shape.is_sequence()) return "sequences of " + std::to_string(shape.tokens) + " tokens";
  if (shape.is_row) return "rows of " + std::to_string(shape.channels) + " columns";
  return "images of " + std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width) + " (C x H x W)";
}

bool is_of_file(const wire::ModelSpec& spec) {
  return spec.name() == "exported" || spec.name() == "torchscript" || spec.name() == "plugin";
}

const FileTensor* find_tensor(const WeightFiles& files, std::string_view name) {
  const auto& all = files.tensors();
  const auto at = std::ranges::find_if(all, [&](const FileTensor& tensor) {
    return tensor.name == name || tensor.name == "transformer." + std::string(name);
  });
  return at == all.end() ? nullptr : &*at;
}

// What the weights of a built-in model show: its classes, and the stem that the job left open.
Result<uint32_t> learn_from_weights(const std::string& path, wire::ModelSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(path));
  const FileTensor* first = find_tensor(files, "conv1.weight");
  if (spec.name().starts_with("resnet") && first != nullptr && first->shape.size() == 4)
    spec.set_stem(first->shape[3] == kImagenetWindow ? "imagenet" : "cifar");
  for (const std::string_view name : kLastLayers) {
    const FileTensor* last = find_tensor(files, name);
    if (last != nullptr && !last->shape.empty()) return static_cast<uint32_t>(last->shape[0]);
  }
  return Status(Code::kBadData, path + " has no layer that gives classes; export the model again");
}

// Nothing but a look at the model tells the classes of a file's: names, the last parameter, the
// data. The first number is the likeliest one.
std::vector<uint32_t> possible_classes(const TrainedModel& model, const DataKind& data) {
  std::vector<uint32_t> all;
  const auto add = [&all](uint64_t classes) {
    if (classes > 0 && std::ranges::find(all, classes) == all.end())
      all.push_back(static_cast<uint32_t>(classes));
  };
  add(static_cast<uint64_t>(model.legend.class_names_size()));
  add(model.legend.left_out_names());
  add(model.job.model().vocab());
  if (!model.is_directory) {
    const auto files = WeightFiles::open(model.weights);
    for (const char* name : {"fc.bias", "head.bias", "classifier.bias"})
      if (const FileTensor* last = files.is_ok() ? find_tensor(*files, name) : nullptr)
        add(static_cast<uint64_t>(last->shape.empty() ? 0 : last->shape[0]));
  }
  add(model.outputs);
  add(data.classes);
  return all;
}

}  // namespace

Result<OpenModel> OpenModel::open(const TrainedModel& model, const DataKind& data) {
  OpenModel made;
  if (loss_kind(model.job.train()) != LossKind::kCrossEntropy)
    return Status(Code::kUsage, model.place + " was trained with train.loss " +
                                    model.job.train().loss() +
                                    ", which has no classes; lockstep export model writes it for "
                                    "other programs");
  wire::ModelSpec spec = model.job.model();
  std::vector<uint32_t> possible;
  if (is_of_file(spec)) {
    if (spec.name() == "plugin" && model.is_directory)
      return Status(Code::kUsage, model.place +
                                      " holds the weights of a plug-in, but not the "
                                      "plug-in; name the run directory");
    possible = possible_classes(model, data);
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t classes, learn_from_weights(model.weights, spec));
    possible = {classes};
  }
  Status refused;
  for (const uint32_t classes : possible) {
    auto model_of = model.is_int8 && spec.name() == "exported"
                        ? exported::open_program_for_use(spec.path(), data.shape, classes)
                        : make_model(spec, data.shape, classes);
    if (!model_of.is_ok()) {
      if (refused.is_ok()) refused = model_of.status();
      continue;
    }
    made.model_ = std::move(model_of).value();
    made.classes_ = classes;
    break;
  }
  // What is wrong with the file itself is no fault of the data.
  if (made.model_ == nullptr && refused.code() != Code::kConfig) return refused;
  if (made.model_ == nullptr)
    return Status(refused.code(), data.name + " has " + kind_text(data.shape) +
                                      ", which the model in " + model.place +
                                      " does not take: " + refused.message());
  if (made.model_->layout().own_loss)
    return Status(Code::kUsage, "the model in " + model.place +
                                    " gives its own loss and no logits; lockstep export model "
                                    "writes it for other programs");
  if (is_of_file(spec) && model.is_directory) {
    InitialTensors initial = initial_tensors(made.model_->layout());
    made.tensors_ = {std::move(initial.parameters), std::move(initial.buffers)};
  } else {
    auto tensors = load_model_tensors(model.weights, spec, made.model_->layout());
    if (!tensors.is_ok())  // the weights were verified, so the samples are others
      return Status(Code::kBadData,
                    data.name + " has " + kind_text(data.shape) +
                        ", which do not fit the model: " + tensors.status().message());
    made.tensors_ = std::move(tensors).value();
  }
  made.compute_type_ = compute_type(model.job.train());
  made.is_fast_ = model.job.comm().numerics() == "fast";
  return made;
}

at::Tensor OpenModel::logits(const data::SampleShape& shape, const void* inputs,
                             uint64_t samples) const {
  const at::NoGradGuard no_grad;
  const AutocastScope autocast(c10::DeviceType::CPU, compute_type_);
  ForwardMode mode;
  mode.is_fast = is_fast_;
  const ModelOutput output = model_->forward({.x = model_input(shape, inputs, samples)},
                                             tensors_.parameters, tensors_.buffers, mode);
  return output.logits.to(at::kFloat).contiguous();
}

}  // namespace lockstep
