#include "deploy/cli/export/model_card.h"

#include <google/protobuf/util/json_util.h>

#include <cstdio>

#include "comm/base/text/printable.h"
#include "comm/run/job/data_legend.h"
#include "deploy/cli/export/input_card.h"
#include "deploy/cli/export/markdown.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kUsageFormat = 1;
constexpr double kLayerNormEps = 1e-5;
constexpr int64_t kColours = 3;
constexpr int64_t kGpt2Vocabulary = 50257;
constexpr int64_t kGpt2EndOfText = 50256;

Json model_json(const wire::ModelSpec& spec) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(spec, &text, options).ok()) return Json();
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  for (const char* place :
       {"path", "eval_path", "predict_path", "init", "init_skip", "init_sha256"})
    json.erase(place);
  return json;
}

std::string number(double value, const char* format = "%.4f") {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

bool is_resnet(const ModelFacts& model) {
  return model.job.model().name().starts_with("resnet");
}

// How to load in Python.
std::string resnet_net_lines(const ModelFacts& model, bool is_imagenet) {
  std::string lines = "net = torchvision.models." + model.job.model().name() +
                      "(num_classes=" + std::to_string(model.outputs) + ")\n";
  if (!is_imagenet || (model.channels != kColours && model.channels > 0))
    lines += "net.conv1 = torch.nn.Conv2d(" + std::to_string(model.channels) + ", 64, " +
             (is_imagenet ? "7, stride=2, padding=3" : "3, padding=1") + ", bias=False)\n";
  if (!is_imagenet) lines += "net.maxpool = torch.nn.Identity()\n";
  return lines;
}

std::string resnet_lines(const ModelFacts& model, bool is_imagenet) {
  return "import torch, torchvision\n"
         "from safetensors.torch import load_file\n\n" +
         resnet_net_lines(model, is_imagenet) +
         "net.load_state_dict(load_file(\"model.safetensors\"))\nnet.eval()\n";
}

std::string loading_lines(const ModelFacts& model) {
  const std::string& name = model.job.model().name();
  if (model.int8 && name != "exported")
    return int8_loading_lines(model).empty()
               ? "from load import weights\n\nweights = weights()  # floats by name\n"
               : "import torch\nfrom load import load\n\nnet = load()\n";
  if (name == "exported" && model.int8)
    return "import torch\n\n"
           "net = torch.export.load(\"model.pt2\").module()  # for evaluation\n";
  if (name == "gpt2")
    return "from transformers import GPT2LMHeadModel\n\n"
           "net = GPT2LMHeadModel.from_pretrained(\".\")\n";
  if (is_resnet(model))
    return resnet_lines(model, model.files.count("model.safetensors") > 0 &&
                                   model.job.model().stem() == "imagenet");
  if (name == "torchscript")
    return "import torch\n\nnet = torch.jit.load(\"model.pt\")  # in evaluation mode\n";
  if (name == "exported")
    return "import torch\n\n"
           "net = torch.export.load(\"model.pt2\").module()  # for evaluation; train.pt2: to go "
           "on\n" +
           std::string(model.files.contains("predict.pt2")
                           ? "# predict.pt2 gives logits for inputs alone\n"
                           : "");
  if (const std::string net = small_net_lines(model); !net.empty()) return net;
  return "from safetensors.torch import load_file\n\n"
         "weights = load_file(\"model.safetensors\")  # tensors by name\n";
}

std::string figure_rows(const ModelFacts& model) {
  std::string rows = "| | |\n|---|---|\n| steps | " + std::to_string(model.manifest.resume.step) +
                     " |\n| samples a step | " + std::to_string(model.manifest.global_batch) +
                     " |\n";
  // The summary tells of the last step only.
  const Json& summary = model.summary;
  const bool is_last = summary.is_object() && summary.value("checkpoint", "") == model.checkpoint;
  const auto add = [&](const char* key, const char* what) {
    if (is_last && summary.contains(key) && summary[key].is_number())
      rows += std::string("| ") + what + " | " + number(summary[key].get<double>()) + " |\n";
  };
  if (model.weights.is_average) rows += "| weights | their average (train.ema) |\n";
  if (model.weights.pruned > 0)
    rows += "| zeros made in matrices and kernels, of 1 | " + number(model.weights.pruned) + " |\n";
  if (model.int8) rows += "| weights | in 8 bits |\n";
  if (model.weights.is_plain() && !model.int8) {  // else they are figures of other weights
    add("eval_loss", "loss of the evaluation data");
    add("eval_accuracy", "accuracy of the evaluation data, of 1");
  }
  const wire::DataFacts& facts = model.facts;
  rows += "| training samples | " + std::to_string(facts.train_samples()) +
          " |\n| fingerprint of the training data | `" + facts.train_fingerprint() + "` |\n";
  if (!facts.eval_fingerprint().empty())
    rows += "| fingerprint of the evaluation data | `" + facts.eval_fingerprint() + "` |\n";
  return rows + "| SHA-256 of the checkpoint's weights in Lockstep | `" +
         model.manifest.weights_sha256 + "` |\n| checkpoint | " + code_span(model.checkpoint) +
         " |\n";
}

std::string int8_text(const ModelFacts& model) {
  if (!model.int8) return "";
  const exported::Int8Counts& counts = model.int8->counts;
  std::string text = "## 8 bits\n\n" + std::to_string(counts.tensors) +
                     " matrices, kernels and embeddings are whole numbers from -127 to 127 with a "
                     "scale for each output channel. Norms and biases are float32. ";
  if (model.int8->form == "stored")
    return text +
           "An embedding that is also the last layer is held once. `load.py` gives back floats, so "
           "8 bits make the file small and the model no faster.\n\n";
  if (counts.products > 0)
    text += std::to_string(counts.products) + " linear layers " +
            (model.int8->form == "dynamic"
                 ? "turn each row of their input to 8 bits, too, and multiply whole numbers "
                   "(`aten._int_mm`): fast on CPUs with AVX512-VNNI, very slow on others, for "
                   "which there is `--int8=weights`. "
                 : "multiply by the numbers as floats and scale the result: about as fast as "
                   "float weights. `--int8=dynamic` is faster on CPUs with AVX512-VNNI. ");
  if (counts.gathers > 0)
    text += std::to_string(counts.gathers) +
            " embeddings scale the rows that they gather; one that is also a linear layer is held "
            "once. ";
  if (counts.floats > 0)
    text += "Of " + std::to_string(counts.floats) +
            " other weights (convolutions, and what no linear layer takes) the program makes "
            "floats first: smaller, not faster. ";
  text += "\n\n";
  return text;
}

std::string measured_on(const Measurement& measured) {
  return std::to_string(measured.samples) + " of " + std::to_string(measured.of) +
         " samples of the run's evaluation data, batches of " + std::to_string(measured.batch) +
         ", " + std::to_string(measured.threads) +
         (measured.threads == 1 ? " thread" : " threads") + ", the models in turns";
}

// Empty unless 8 bits have made the file larger: scales and a changed graph take room, too.
std::string growth_text(const ModelFacts& model) {
  if (!model.int8 || !model.measured || model.measured->models.empty()) return "";
  const uint64_t before = model.measured->models.front().file_bytes;
  const uint64_t after = model.measured->models.back().file_bytes;
  if (after <= before) return "";
  return "The file in 8 bits is larger, " + std::to_string(after) + " bytes in place of " +
         std::to_string(before) +
         ": scales and the changed program take more room than 8 bits save in a model of this "
         "size. Export it without --int8.";
}

std::string measured_section(const ModelFacts& model) {
  if (!model.measured) return "";
  const Measurement& measured = *model.measured;
  std::string text = "## Before and after\n\n";
  const bool is_known = measured.why_not.empty();
  text += is_known ? "Measured by the export on " + measured_on(measured) + ".\n\n"
                   : "Loss, accuracy and speed were not measured: " + plain_text(measured.why_not) +
                         ".\n\n";
  text += is_known ? "| weights | bytes of the file | loss | accuracy, of 1 | samples/s |\n"
                     "|---|---|---|---|---|\n"
                   : "| weights | bytes of the file |\n|---|---|\n";
  for (const MeasuredModel& row : measured.models) {
    text += "| " + row.what + " | " + std::to_string(row.file_bytes) + " |";
    if (is_known)
      text += " " + number(row.loss) + " | " + number(row.accuracy) + " | " +
              number(row.samples_per_second, "%.1f") + " |";
    text += "\n";
  }
  if (const std::string grown = growth_text(model); !grown.empty()) text += "\n" + grown + "\n";
  return text + "\n";
}

Json measured_json(const Measurement& measured) {
  Json out = {{"models", Json::array()}};
  const bool is_known = measured.why_not.empty();
  if (is_known)
    out.update({{"samples", measured.samples},
                {"of", measured.of},
                {"batch", measured.batch},
                {"threads", measured.threads}});
  else
    out["why_not"] = measured.why_not;
  for (const MeasuredModel& row : measured.models) {
    Json one = {{"weights", row.what}, {"file_bytes", row.file_bytes}};
    if (is_known)
      one.update({{"loss", row.loss},
                  {"accuracy", row.accuracy},
                  {"samples_per_second", row.samples_per_second}});
    out["models"].push_back(one);
  }
  return out;
}

}  // namespace

std::string int8_loading_lines(const ModelFacts& model) {
  if (model.job.model().name() == "gpt2")
    return "from transformers import GPT2Config, GPT2LMHeadModel\n\n"
           "net = GPT2LMHeadModel(GPT2Config.from_pretrained(HERE))\n"
           "net.load_state_dict({\"lm_head.weight\": found[\"transformer.wte.weight\"], "
           "**found})\n";
  if (is_resnet(model))
    return "import torchvision\n\n" +
           resnet_net_lines(model, model.job.model().stem() == "imagenet") +
           "net.load_state_dict(found)\n";
  return "";
}

std::string figures_text(const ModelFacts& model) {
  if (!model.measured) return "";
  const Measurement& measured = *model.measured;
  std::string grown = growth_text(model);
  if (!grown.empty()) grown += "\n";
  if (!measured.why_not.empty())
    return "loss, accuracy and speed were not measured: " + measured.why_not + "\n" + grown;
  std::string text = "on " + measured_on(measured) + ":\n";
  for (const MeasuredModel& row : measured.models)
    text += "  " + row.what + ": " + std::to_string(row.file_bytes) + " bytes, loss " +
            number(row.loss) + ", accuracy " + number(row.accuracy) + ", " +
            number(row.samples_per_second, "%.1f") + " samples/s\n";
  return text + grown;
}

Json usage_json(const ModelFacts& model) {
  Json out;
  out["format"] = kUsageFormat;
  out["job"] = model.job.job();
  out["model"] = model_json(model.job.model());
  out["step"] = model.manifest.resume.step;
  out["checkpoint"] = model.checkpoint;
  out[model.weights.is_plain() ? "weights_sha256" : "checkpoint_weights_sha256"] =
      model.manifest.weights_sha256;
  if (model.weights.is_average) out["average"] = true;
  if (model.weights.pruned > 0) out["pruned"] = model.weights.pruned;
  if (model.int8)
    out["int8"] = {{"form", model.int8->form},
                   {"tensors", model.int8->counts.tensors},
                   {"linear", model.int8->counts.products},
                   {"embeddings", model.int8->counts.gathers},
                   {"made_floats", model.int8->counts.floats}};
  if (model.measured) out["measured"] = measured_json(*model.measured);
  out["files"] = model.files;
  out["data"] = {{"train_fingerprint", model.facts.train_fingerprint()},
                 {"train_samples", model.facts.train_samples()}};
  if (model.outputs > 0) out["outputs"] = model.outputs;
  out["architecture"] = architecture_text(model);
  out["input"] = input_json(model);
  out["evaluation"] = {{"batch", model.job.train().eval_batch()},
                       {"precision", model.job.train().precision()},
                       {"loss", model.job.train().loss()}};
  out.update(legend_json(model.facts.legend()));
  return out;
}

Json gpt2_config(const ModelFacts& model) {
  const wire::ModelSpec& spec = model.job.model();
  const Json end =
      model.outputs == kGpt2Vocabulary ? Json(kGpt2EndOfText) : Json();  // of other vocabularies
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"vocab_size", model.outputs},
          {"n_positions", spec.block()},
          {"n_embd", spec.n_embd()},
          {"n_layer", spec.n_layer()},
          {"n_head", spec.n_head()},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", kLayerNormEps},
          {"resid_pdrop", spec.dropout()},
          {"embd_pdrop", spec.dropout()},
          {"attn_pdrop", 0},
          {"tie_word_embeddings", true},
          {"bos_token_id", end},
          {"eos_token_id", end},
          {"dtype", "float32"},
          {"torch_dtype", "float32"}};
}

std::string readme_text(const ModelFacts& model) {
  return "# " + model.job.job() + ": " + model.job.model().name() +
         "\n\nTrained and exported by Lockstep.\n\n## Load it\n\n```python\n" +
         loading_lines(model) + "```\n\n" + input_text(model) +
         "`lockstep.json` says the same for programs, with class names and hashes.\n\n" +
         int8_text(model) + measured_section(model) + "## Figures\n\n" + figure_rows(model) +
         "\nMade by:\n\n```\n" + printable_line(model.command) + "\n```\n";
}

}  // namespace lockstep
