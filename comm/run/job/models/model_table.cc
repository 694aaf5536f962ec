#include "comm/run/job/models/model_table.h"

#include <algorithm>

#include "comm/base/text/nearest.h"
#include "comm/run/job/models/gpt2_spec.h"

namespace lockstep {
namespace {

constexpr ModelKey kPlainKeys[] = {{"dropout", "after the hidden layers"}, {"batch_norm"}};
constexpr ModelKey kResnetKeys[] = {{"dropout", "before the last layer"}, {"stem"}};
constexpr ModelKey kFileKeys[] = {{"path"}, {"sha256"}};
constexpr ModelKey kExportedKeys[] = {
    {"path"}, {"sha256"}, {"eval_path"}, {"eval_sha256"}, {"predict_path"}};

constexpr std::string_view kFromFile = "the file in model.path";

constexpr ModelRow kModels[] = {
    {.name = "mlp",
     .about = "linear layers of 256, 128 and the classes, for images and rows of tables",
     .keys = kPlainKeys},
    {.name = "cnn",
     .about = "two 3x3 convolutions with pooling and one hidden layer, for images",
     .elsewhere = {"lenet", "convnet"},
     .keys = kPlainKeys},
    {.name = "resnet18",
     .about = "a residual network, for images",
     .elsewhere = {"resnet"},
     .keys = kResnetKeys},
    {.name = "resnet50", .about = "a residual network, for images", .keys = kResnetKeys},
    kGpt2Row,
    {.name = "exported",
     .about = kFromFile,
     .elsewhere = {"torch.export", "export", "pt2"},
     .keys = kExportedKeys,
     .takes = ModelTakes::kEither,
     .is_from_file = true},
    {.name = "torchscript",
     .about = kFromFile,
     .keys = kFileKeys,
     .takes = ModelTakes::kEither,
     .is_from_file = true},
    {.name = "plugin",
     .about = kFromFile,
     .keys = kFileKeys,
     .takes = ModelTakes::kEither,
     .is_from_file = true},
    {.name = "script",
     .about = "whatever the script in script.path trains",
     .takes = ModelTakes::kEither,
     .is_script = true},
};

template <typename Pick>
std::string join_models(Pick pick) {
  std::vector<std::string_view> names;
  for (const ModelRow& row : kModels) {
    if (pick(row)) names.push_back(row.name);
  }
  return join_names(names);
}

}  // namespace

std::span<const ModelRow> model_table() {
  return kModels;
}

const ModelRow* find_model(std::string_view name) {
  const auto* found = std::ranges::find(kModels, name, &ModelRow::name);
  return found == std::end(kModels) ? nullptr : found;
}

std::vector<std::string_view> model_names() {
  std::vector<std::string_view> names;
  for (const ModelRow& row : kModels) names.push_back(row.name);
  return names;
}

std::string models_of_tokens() {
  return join_models([](const ModelRow& row) { return row.takes == ModelTakes::kTokens; });
}

std::string models_of_packed_documents() {
  return join_models([](const ModelRow& row) { return row.tells_documents_apart; });
}

}  // namespace lockstep
