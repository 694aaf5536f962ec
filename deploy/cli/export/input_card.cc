#include "deploy/cli/export/input_card.h"

#include <charconv>
#include <vector>

#include "comm/run/job/data_formats.h"
#include "comm/run/job/predictions.h"
#include "data/transform/transform_list.h"
#include "deploy/cli/export/markdown.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

bool takes_tokens(const ModelFacts& model) {
  return predictions_per_sample(model.job.model()) != 1;
}

const std::string& format_of(const ModelFacts& model) {
  return model.job.data().train().format();
}

bool takes_rows(const ModelFacts& model) {
  return format_of(model) == "csv" || !model.facts.legend().columns().empty();
}

bool has_masks(const ModelFacts& model) {
  return format_of(model) == "image_mask" ||
         (format_of(model) == "webdataset" && model.job.data().targets_size() > 0);
}

// Arrays and columns of lists, which may be images, rows, volumes or ids.
bool takes_arrays(const ModelFacts& model) {
  const std::string& format = format_of(model);
  return !has_masks(model) && (model.job.data().inputs_size() > 0 || format == "arrow");
}

std::vector<std::string> list_of(const google::protobuf::RepeatedPtrField<std::string>& words) {
  return {words.begin(), words.end()};
}

// The steps that evaluation does with a picture, in this order.
struct EvalStep {
  std::string word;
  int64_t pixels = 0;
};
std::vector<EvalStep> eval_steps(const ModelFacts& model) {
  const auto list = data::parse_transforms(list_of(model.job.data().transforms()));
  if (!list.is_ok() || list->frame.is_empty()) return {};
  const data::ImageFrame& frame = list->frame;
  const uint32_t shorter = data::evaluation_side(frame);
  std::vector<EvalStep> steps;
  steps.push_back(shorter > 0 ? EvalStep{"resize", shorter}
                              : EvalStep{"resize_if_smaller", frame.size});
  steps.push_back({"center_crop", frame.size});
  return steps;
}

std::string number(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string numbers(const google::protobuf::RepeatedField<float>& values) {
  std::string text;
  for (const float value : values) text += (text.empty() ? "" : ", ") + number(value);
  return "[" + text + "]";
}

std::string normalize_text(const ModelFacts& model, const char* by) {
  const wire::DataLegend& legend = model.facts.legend();
  if (legend.mean().empty()) return "";
  return std::string("Then (x - mean) / std by ") + by + ": mean " + numbers(legend.mean()) +
         ", std " + numbers(legend.std()) + ".\n\n";
}

std::string arrays_text(const ModelFacts& model) {
  return "Arrays in the shape of the data, (batch, ...): floats and rows as float32, rows of ids "
         "as "
         "int64, bytes of images as float32 divided by 255.\n\n" +
         normalize_text(model, "channel");
}

std::string rows_text(const ModelFacts& model) {
  std::string text = "Rows as float32 (batch, columns). ";
  const auto& columns = model.facts.legend().columns();
  if (!columns.empty()) {
    text += "Columns, in this order:";
    for (int i = 0; i < columns.size(); ++i)
      text += (i > 0 ? ", " : " ") + code_span(columns.Get(i));
    text += ". ";
  }
  return text + "\n\n" + normalize_text(model, "column");
}

std::string pictures_text(const ModelFacts& model) {
  std::string text = "Images as float32 (batch, " +
                     (model.channels > 0 ? std::to_string(model.channels) : "channels") +
                     ", height, width), made as evaluation makes them:\n\n";
  int n = 0;
  const auto step = [&](const std::string& what) {
    text += std::to_string(++n) + ". " + what + "\n";
  };
  for (const EvalStep& one : eval_steps(model)) {
    const std::string pixels = std::to_string(one.pixels);
    if (one.word == "resize")
      step("`torchvision.transforms.Resize(" + pixels + ")` of a PIL image: the shorter side");
    if (one.word == "resize_if_smaller")
      step("of an image whose shorter side is below " + pixels + ": `Resize(" + pixels + ")`");
    if (one.word == "center_crop") step("`torchvision.transforms.CenterCrop(" + pixels + ")`");
  }
  step("`torchvision.transforms.ToTensor()`: bytes divided by 255");
  const wire::DataLegend& legend = model.facts.legend();
  if (!legend.mean().empty())
    step("`torchvision.transforms.Normalize(" + numbers(legend.mean()) + ", " +
         numbers(legend.std()) + ")`");
  text += "\n";
  if (has_masks(model))
    text +=
        "Masks are uint8 (batch, height, width), cut as their images, each pixel the nearest one. "
        "Only training and evaluation take them; a prediction takes the image.\n\n";
  if (model.job.data().transforms_size() > 0) {
    text += "Transforms of the job:";
    for (const std::string& word : model.job.data().transforms()) text += " " + code_span(word);
    text += "; augmentation belongs to training only.\n\n";
  }
  return text;
}

std::string tokens_text(const ModelFacts& model) {
  std::string text = "Token ids as int64 (batch, tokens), at most " +
                     std::to_string(model.job.model().block()) + " a sequence";
  if (model.outputs > 0) text += ", each below " + std::to_string(model.outputs);
  text += ". ";
  if (is_text_format(format_of(model)) && model.tokenizer_files.empty())
    return text + "A token is a byte of the text.\n\n";
  if (model.tokenizer_files.empty()) return text + "Tokens are those of the training data.\n\n";
  text += "The tokenizer is beside the weights:";
  for (const std::string& file : model.tokenizer_files) text += " " + code_span(file);
  return text + ".\n\n";
}

Json tokens_json(const ModelFacts& model) {
  Json out = {{"kind", "tokens"},
              {"dtype", "int64"},
              {"shape", {"batch", "tokens"}},
              {"block", model.job.model().block()}};
  if (model.outputs > 0) out["vocabulary"] = model.outputs;
  if (is_text_format(format_of(model)))
    out["tokens"] = model.tokenizer_files.empty() ? "bytes" : "pieces";
  if (!model.tokenizer_files.empty())
    out["tokenizer"] = {{"files", model.tokenizer_files},
                        {"sha256", model.job.data().tokenizer_sha256()}};
  return out;
}

Json pictures_json(const ModelFacts& model) {
  Json out = {{"kind", "images"},
              {"dtype", "float32"},
              {"shape", {"batch", "channels", "height", "width"}}};
  Json steps = Json::array();
  for (const EvalStep& step : eval_steps(model)) steps.push_back({{step.word, step.pixels}});
  steps.push_back({{"divide_bytes_by", 255}});
  if (!model.facts.legend().mean().empty()) steps.push_back("normalize");
  out["evaluation"] = std::move(steps);
  if (has_masks(model))
    out["masks"] = {{"dtype", "uint8"},
                    {"shape", {"batch", "height", "width"}},
                    {"names", list_of(model.job.data().targets())}};
  return out;
}

Json rows_json(const ModelFacts& model) {
  Json out = {{"kind", "rows"}, {"dtype", "float32"}, {"shape", {"batch", "columns"}}};
  if (const auto& columns = model.facts.legend().columns(); !columns.empty())
    out["columns"] = list_of(columns);
  if (!model.facts.legend().mean().empty()) out["evaluation"] = Json::array({"normalize"});
  return out;
}

std::string mlp_lines(bool batch_norm) {
  return std::string(
             "\ndef net(x):  # inputs, 256, 128, classes\n"
             "    x = x.flatten(1)\n"
             "    for i in \"12\":\n"
             "        x = F.linear(x, weights[f\"fc{i}.weight\"], weights[f\"fc{i}.bias\"])\n") +
         (batch_norm ? "        x = norm(x, f\"bn{i}\")\n" : "") +
         "        x = x.relu()\n"
         "    return F.linear(x, weights[\"fc3.weight\"], weights[\"fc3.bias\"])\n";
}

std::string cnn_lines(bool batch_norm) {
  return std::string(
             "\ndef net(x):  # 16 and 32 channels, pooled twice, 64, classes\n"
             "    for i in \"12\":\n"
             "        x = F.conv2d(x, weights[f\"conv{i}.weight\"], "
             "weights[f\"conv{i}.bias\"])\n") +
         (batch_norm ? "        x = norm(x, f\"bn{i}\")\n" : "") +
         "        x = F.max_pool2d(x.relu(), 2)\n"
         "    x = F.linear(x.flatten(1), weights[\"fc1.weight\"], weights[\"fc1.bias\"]).relu()\n"
         "    return F.linear(x, weights[\"fc2.weight\"], weights[\"fc2.bias\"])\n";
}

}  // namespace

std::string small_net_lines(const ModelFacts& model) {
  const wire::ModelSpec& spec = model.job.model();
  if (spec.name() != "mlp" && spec.name() != "cnn") return "";
  std::string lines =
      "import torch\n"
      "from safetensors.torch import load_file\n"
      "from torch.nn import functional as F\n\n"
      "weights = load_file(\"model.safetensors\")  # tensors by name\n";
  if (spec.batch_norm())
    lines +=
        "\ndef norm(x, name):\n"
        "    return F.batch_norm(x, weights[f\"{name}.running_mean\"], "
        "weights[f\"{name}.running_var\"],\n"
        "                        weights[f\"{name}.weight\"], weights[f\"{name}.bias\"])\n";
  return lines +
         (spec.name() == "mlp" ? mlp_lines(spec.batch_norm()) : cnn_lines(spec.batch_norm()));
}

std::string architecture_text(const ModelFacts& model) {
  const wire::ModelSpec& spec = model.job.model();
  const std::string norm = spec.batch_norm() ? ", batch norm before each ReLU" : "";
  if (spec.name() == "mlp") return "linear layers: inputs, 256, 128, outputs; ReLU between" + norm;
  if (spec.name() == "cnn")
    return "3x3 convolutions of 16 and 32 channels without padding, each with ReLU and max pooling "
           "of 2, linear layers of 64 and outputs" +
           std::string(spec.batch_norm() ? "; batch norm behind each convolution" : "");
  if (spec.name().starts_with("resnet"))
    return "torchvision.models." + spec.name() +
           (spec.stem() == "imagenet" ? "" : " with a 3x3 first convolution and no max pooling");
  if (spec.name() == "gpt2") return "transformers.GPT2LMHeadModel";
  if (spec.name() == "exported") return "the graph in model.pt2";
  if (spec.name() == "torchscript") return "the module in model.pt";
  return spec.name();
}

Json input_json(const ModelFacts& model) {
  Json out = takes_tokens(model)   ? tokens_json(model)
             : takes_rows(model)   ? rows_json(model)
             : takes_arrays(model) ? Json{{"kind", "arrays"}}
                                   : pictures_json(model);
  const wire::DataSpec& keys = model.job.data();
  const auto add = [&](const char* key, const std::string& word) {
    if (!word.empty()) out[key] = word;
  };
  const auto add_all = [&](const char* key, const auto& words) {
    if (!words.empty()) out[key] = list_of(words);
  };
  if (!takes_tokens(model)) out["transforms"] = list_of(keys.transforms());
  if (!takes_tokens(model) && model.channels > 0) out["channels"] = model.channels;
  add("format", format_of(model));
  add("column", keys.input());
  add("label_column", keys.label());
  add_all("inputs", keys.inputs());
  add_all("targets", keys.targets());
  add("weight_column", keys.weight());
  if (takes_tokens(model) || is_token_format(format_of(model))) {
    add("documents", keys.documents());
    add("document_end", keys.document_end());
  }
  return out;
}

std::string input_text(const ModelFacts& model) {
  return "## Input\n\n" + (takes_tokens(model)   ? tokens_text(model)
                           : takes_rows(model)   ? rows_text(model)
                           : takes_arrays(model) ? arrays_text(model)
                                                 : pictures_text(model));
}

}  // namespace lockstep
