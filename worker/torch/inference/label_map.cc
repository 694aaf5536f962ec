#include "worker/torch/inference/label_map.h"

#include <algorithm>
#include <string>

#include "comm/base/labels.h"
#include "comm/base/text/shell_word.h"

namespace lockstep {
namespace {

template <typename Names>
std::string some_of(const Names& names) {
  constexpr int kShown = 5;
  std::string text;
  for (int i = 0; i < std::min<int>(kShown, names.size()); ++i)
    text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? text + " ..." : text;
}

}  // namespace

Result<LabelMap> LabelMap::make(const ModelAndData& opened) {
  LabelMap map;
  const OpenModel& model = *opened.model;
  const data::Dataset& dataset = opened.data->dataset();
  const auto& known = opened.trained.legend.class_names();
  const std::vector<std::string>& names = dataset.class_names();
  map.data_ = opened.data->name();
  map.classes_ = model.label_classes();
  if (model.label_is_number() || dataset.shape().is_sequence() || names.empty() || known.empty() ||
      std::equal(names.begin(), names.end(), known.begin(), known.end()))
    return map;
  for (const std::string& name : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end())
      return Status(Code::kBadData, map.data_ + " has the class " + shell_word(name) +
                                        ", which the model does not know; it knows " +
                                        some_of(known));
    map.to_.push_back(at - known.begin());
  }
  return map;
}

Status LabelMap::apply(std::span<int64_t> labels) const {
  for (int64_t& label : labels) {
    if (label == kIgnoredLabel) continue;
    if (!to_.empty()) label = to_[static_cast<size_t>(label)];
    if (classes_ == 0 || label < int64_t{classes_}) continue;
    return {Code::kBadData, data_ +
                                " has a label that is no class of the model, "
                                "which has " +
                                std::to_string(classes_) +
                                " classes; name data with the same classes"};
  }
  return Status::ok();
}

}  // namespace lockstep
