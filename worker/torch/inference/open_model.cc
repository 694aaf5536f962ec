#include "worker/torch/inference/open_model.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "comm/base/text/shell_word.h"
#include "comm/run/job/loss_kind.h"
#include "data/dataset/float_image.h"
#include "data/dataset/id_row.h"
#include "worker/model/weights/weight_files.h"
#include "worker/torch/engine/precision.h"
#include "worker/torch/engine/sample_loss.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/plan/program_for_use.h"

namespace lockstep {
namespace {

// The weights of the last layer, whose rows are the classes; wte is gpt2's.
constexpr std::string_view kLastLayers[] = {"wte.weight", "fc.weight", "fc3.weight", "fc2.weight"};
constexpr int64_t kImagenetWindow = 7;

std::string kind_text(const data::SampleShape& shape) {
  if (shape.is_sequence()) return "sequences of " + std::to_string(shape.tokens) + " tokens";
  if (shape.is_row) return "rows of " + std::to_string(shape.channels) + " columns";
  if (shape.float_bytes > 0) return data::floats_text(shape);
  if (shape.has_ids()) return data::ids_text(shape);
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

// Reads facts from the weights of a built-in model: its classes, and the stem that the job left
// open.
Result<uint32_t> learn_from_weights(const std::string& path, wire::ModelSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(path, WeightSource::kRun));
  const FileTensor* first = find_tensor(files, "conv1.weight");
  if (spec.name().starts_with("resnet") && first != nullptr && first->shape.size() == 4)
    spec.set_stem(first->shape[3] == kImagenetWindow ? "imagenet" : "cifar");
  for (const std::string_view name : kLastLayers) {
    const FileTensor* last = find_tensor(files, name);
    if (last != nullptr && !last->shape.empty()) return static_cast<uint32_t>(last->shape[0]);
  }
  return Status(Code::kBadData, path + " has no layer that gives classes; export the model again");
}

// Guesses the classes of a model from a file, which only the model itself could tell, by names, the
// last parameter and the data. The first number is the likeliest one.
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
    const auto files = WeightFiles::open(model.weights, WeightSource::kRun);
    for (const char* name : {"fc.bias", "head.bias", "classifier.bias"})
      if (const FileTensor* last = files.is_ok() ? find_tensor(*files, name) : nullptr)
        add(static_cast<uint64_t>(last->shape.empty() ? 0 : last->shape[0]));
  }
  add(model.outputs);
  add(data.classes);
  return all;
}

// A model of one output for any number of classes; else the classes that it may have.
Result<std::vector<uint32_t>> possible_outputs(const TrainedModel& model, const DataKind& data,
                                               wire::ModelSpec& spec) {
  if (is_of_file(spec)) {
    const uint32_t one = outputs_of(model.job.train(), data.shape, 0);
    return one > 0 ? std::vector<uint32_t>{one} : possible_classes(model, data);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t classes, learn_from_weights(model.weights, spec));
  return std::vector<uint32_t>{classes};
}

Status no_logits(const TrainedModel& model) {
  const std::string what = "the model in " + model.place + " gives its own loss and no logits; ";
  if (model.is_int8)
    return {Code::kUsage,
            what + "export it without --int8, which keeps its program for predictions"};
  if (model.job.model().name() != "exported")
    return {Code::kUsage, what +
                              "lockstep eval evaluates it, and lockstep export model writes it "
                              "for other programs"};
  return {Code::kUsage, what +
                            "train it with model.predict_path, which names a program that gives "
                            "logits for inputs alone"};
}

}  // namespace

Result<OpenModel> OpenModel::open(const TrainedModel& model, const DataKind& data, ModelUse use) {
  OpenModel made;
  made.use_ = use;
  made.has_weights_ =
      data.shape.fields != nullptr && data.shape.fields->find(data::FieldRole::kWeight);
  made.loss_ = loss_kind(model.job.train());
  wire::ModelSpec spec = model.job.model();
  if (spec.name() == "plugin" && model.is_directory)
    return Status(Code::kUsage, model.place +
                                    " holds the weights of a plug-in, but not the "
                                    "plug-in; name the run directory");
  if (use == ModelUse::kEvaluate) spec.clear_predict_path();  // need not be there
  LOCKSTEP_ASSIGN_OR_RETURN(const auto possible, possible_outputs(model, data, spec));
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
  // An error of the file itself is no fault of the data.
  const bool is_of_predictions =
      !spec.predict_path().empty() &&
      refused.message().find(shell_word(spec.predict_path())) != std::string::npos;
  if (made.model_ == nullptr && (refused.code() != Code::kConfig || is_of_predictions))
    return refused;
  if (made.model_ == nullptr)
    return Status(refused.code(), data.name + " has " + kind_text(data.shape) +
                                      ", which the model in " + model.place +
                                      " does not take: " + refused.message());
  if (use == ModelUse::kPredict && made.own_loss() && made.model_->predictor() == nullptr)
    return no_logits(model);
  LOCKSTEP_RETURN_IF_ERROR(made.load_tensors(model, spec, data));
  made.compute_type_ = compute_type(model.job.train());
  made.is_fast_ = model.job.comm().numerics() == "fast";
  return made;
}

Status OpenModel::load_tensors(const TrainedModel& model, const wire::ModelSpec& spec,
                               const DataKind& data) {
  if (is_of_file(spec) && model.is_directory) {
    InitialTensors initial = initial_tensors(model_->layout());
    tensors_ = {std::move(initial.parameters), std::move(initial.buffers),
                first_counters(model_->layout())};
    return Status::ok();
  }
  auto tensors = load_model_tensors(model.weights, spec, model_->layout());
  if (!tensors.is_ok())  // the weights were verified, so the samples are others
    return {Code::kBadData, data.name + " has " + kind_text(data.shape) +
                                ", which do not fit the model: " + tensors.status().message()};
  tensors_ = std::move(tensors).value();
  return Status::ok();
}

uint32_t OpenModel::label_classes() const {
  if (own_loss() || label_is_number()) return 0;
  if (loss_ != LossKind::kBce) return classes_;
  return classes_ == 1 ? 2 : 0;
}

bool OpenModel::label_is_number() const {
  return !own_loss() && loss_row(loss_).compares_numbers;
}

uint64_t OpenModel::padded(uint64_t samples) const {
  if (use_ == ModelUse::kEvaluate) return samples;
  const Predictor* predictor = model_->predictor();
  return std::max(samples,
                  predictor != nullptr ? predictor->fewest() : model_->evaluation_batches().min);
}

Status OpenModel::check_batch(uint64_t samples) const {
  const uint64_t padded_samples = padded(samples);
  const std::string whose = "a batch of " + std::to_string(padded_samples) +
                            " samples (--batch sets the size; the last one is the rest)";
  const Predictor* predictor = use_ == ModelUse::kPredict ? model_->predictor() : nullptr;
  return predictor != nullptr ? predictor->check_batch(padded_samples, whose)
                              : model_->check_batch(padded_samples, /*training=*/false, whose);
}

at::Tensor OpenModel::target(const data::SampleShape& shape, const int64_t* labels,
                             uint64_t samples) const {
  const FieldTensors fields = field_inputs(shape, labels, samples);
  return fields.target.defined() ? fields.target : label_input(shape, labels, samples);
}

// As SlotForward::evaluate().
ModelOutput OpenModel::evaluate(const data::SampleShape& shape, const void* inputs,
                                const int64_t* labels, uint64_t samples) const {
  const at::NoGradGuard no_grad;
  const at::Tensor wanted = label_input(shape, labels, samples);
  const FieldTensors fields = field_inputs(shape, labels, samples);
  const bool takes_labels = own_loss() && own_loss()->takes_labels;
  const ForwardMode mode{.is_fast = is_fast_, .counters = tensors_.counters};
  ModelOutput output;
  {
    const AutocastScope autocast(c10::DeviceType::CPU, compute_type_);
    output = model_->forward({.x = model_input(shape, inputs, samples),
                              .labels = takes_labels ? wanted : at::Tensor(),
                              .fields = fields},
                             tensors_.parameters, tensors_.buffers, mode);
  }
  if (own_loss()) output.losses = output.losses.to(at::kFloat);
  if (has_logits_of_classes()) output.logits = output.logits.to(at::kFloat).contiguous();
  finish_losses(loss_, own_loss().has_value(), fields, wanted, /*label_smoothing=*/0, &output);
  return output;
}

at::Tensor OpenModel::logits(const data::SampleShape& shape, const void* inputs,
                             const int64_t* labels, uint64_t samples) const {
  const at::NoGradGuard no_grad;
  const AutocastScope autocast(c10::DeviceType::CPU, compute_type_);
  const ModelInputs given{.x = model_input(shape, inputs, samples),
                          .labels = {},
                          .fields = field_inputs(shape, labels, samples)};
  if (const Predictor* predictor = model_->predictor(); predictor != nullptr)
    return predictor->logits(given, tensors_.parameters, tensors_.buffers, tensors_.counters)
        .to(at::kFloat)
        .contiguous();
  const ForwardMode mode{.is_fast = is_fast_, .counters = tensors_.counters};
  const ModelOutput output = model_->forward(given, tensors_.parameters, tensors_.buffers, mode);
  return output.logits.to(at::kFloat).contiguous();
}

}  // namespace lockstep
