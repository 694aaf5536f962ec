#include "data/open/empty_classes.h"

#include <algorithm>
#include <vector>

#include "data/csv/csv_text.h"

namespace lockstep::data {

std::string empty_classes_text(const Dataset& dataset) {
  constexpr size_t kNamed = 5;
  const auto labels = dataset.as<Labels>();
  if (!labels || !dataset.shape().has_label() || dataset.shape().is_sequence()) return "";
  std::vector<bool> is_seen(dataset.classes());
  size_t left = is_seen.size();
  for (uint64_t i = 0; i < dataset.samples() && left > 0; ++i) {
    const auto [from, number] = labels->at(i);
    const uint32_t label = from.label(number);
    if (label >= is_seen.size() || is_seen[label]) continue;
    is_seen[label] = true;
    --left;
  }
  if (left == 0) return "";
  std::string names;
  size_t named = 0;
  for (size_t label = 0; label < is_seen.size() && named < kNamed; ++label) {
    if (is_seen[label]) continue;
    const bool has_name = label < dataset.class_names().size();
    names += (named++ == 0 ? "" : ", ") +
             (has_name ? shown(dataset.class_names()[label]) : std::to_string(label));
  }
  if (left > named) names += " and " + std::to_string(left - named) + " more";
  const bool is_shifted = left == 1 && !is_seen.front() && dataset.class_names().empty();
  return "no sample has class " + names + ", and the model gets an output for " +
         (left == 1 ? "it" : "each") + " that nothing trains" +
         (is_shifted ? "; if the labels count from 1, subtract 1 from them"
                     : "; remove the class, or add samples of it");
}

}  // namespace lockstep::data
