#include "comm/run/job/models/model_table.h"

#include <algorithm>

#include "comm/base/text/nearest.h"
#include "comm/run/job/models/gpt2_spec.h"

namespace lockstep {
namespace {

constexpr ModelRow kModels[] = {
    {.name = "mlp"},
    {.name = "cnn"},
    {.name = "resnet18"},
    {.name = "resnet50"},
    kGpt2Row,
    {.name = "exported", .takes = ModelTakes::kEither, .is_from_file = true},
    {.name = "torchscript", .takes = ModelTakes::kEither, .is_from_file = true},
    {.name = "plugin", .takes = ModelTakes::kEither, .is_from_file = true},
    {.name = "script", .takes = ModelTakes::kEither, .is_script = true},
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
