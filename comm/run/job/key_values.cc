#include "comm/run/job/key_values.h"

#include <algorithm>
#include <utility>

#include "comm/run/job/data_formats.h"
#include "comm/run/job/loss_kind.h"
#include "comm/run/job/models/model_table.h"

namespace lockstep {

std::vector<KeyValue> key_values(wire::KeyOptions::ValuesOf list) {
  std::vector<KeyValue> values;
  if (list == wire::KeyOptions::DATA_FORMATS)
    for (const NamedFormat& format : kNamedFormats) values.push_back({.name = format.name});
  if (list == wire::KeyOptions::MODELS)
    for (const ModelRow& row : model_table())
      values.push_back({row.name, row.about, row.elsewhere});
  if (list == wire::KeyOptions::LOSSES)
    for (const LossRow& row : kLosses) values.push_back({row.name, row.about, row.elsewhere});
  return values;
}

std::vector<KeyValue> models_with(std::string_view key) {
  std::vector<KeyValue> models;
  for (const ModelRow& row : model_table())
    for (const ModelKey& its : row.keys)
      if (its.key == key) models.push_back({.name = row.name, .about = its.how});
  return models;
}

std::string sentences_of(std::span<const KeyValue> values) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> sentences;
  for (const KeyValue& value : values) {
    if (value.about.empty()) continue;
    auto it = std::ranges::find(sentences, value.about, [](const auto& s) { return s.first; });
    if (it == sentences.end()) it = sentences.insert(it, {value.about, {}});
    it->second.push_back(value.name);
  }
  std::string text;
  for (const auto& [about, names] : sentences) {
    text += text.empty() ? "" : ". ";
    for (size_t i = 0; i < names.size(); ++i)
      text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + std::string(names[i]);
    text += ": " + std::string(about);
  }
  return text;
}

}  // namespace lockstep
