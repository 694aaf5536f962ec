#include "data/csv/csv_labels.h"

#include "comm/base/limits.h"
#include "comm/base/text/utf8.h"
#include "data/base/file_errors.h"
#include "data/csv/csv_numbers.h"
#include "data/csv/csv_text.h"

namespace lockstep::data {
namespace {

constexpr size_t kNameBytes = 1'024;  // of a class or a column

bool is_some_number(std::string_view text) {
  float ignored = 0;
  return parse_csv_number(text, &ignored) != CsvNumber::kNone;
}

}  // namespace

Status check_csv_name(std::string_view name, const std::string& place) {
  if (name.empty()) return bad("has no name in " + place + "; give it one");
  if (name.size() > kNameBytes)
    return bad("has a name of " + std::to_string(name.size()) + " bytes in " + place +
               "; the limit is " + std::to_string(kNameBytes));
  if (is_utf8(name)) return Status::ok();
  return bad("has " + shown(name) + " in " + place +
             ", which is not UTF-8; save the file as UTF-8");
}

CsvLabels::CsvLabels(const std::vector<std::string>* classes)
    : are_classes_known_(classes != nullptr) {
  if (classes == nullptr) return;
  kind_ = classes->empty() ? Kind::kNumbers : Kind::kNames;
  for (uint32_t i = 0; i < classes->size(); ++i) names_[(*classes)[i]] = i;
}

Status CsvLabels::add(std::string_view text, const std::string& place) {
  if (text.empty()) return bad("has no label in " + place + "; fill it in, or take the row away");
  const auto number = parse_csv_class(text);
  if (!number && is_some_number(text))
    return bad("has the label " + shown(text) + " in " + place +
               "; labels are whole numbers from 0, or names of classes; data.label names another "
               "column, and data.targets takes a column of numbers");
  const Kind kind = number ? Kind::kNumbers : Kind::kNames;
  if (kind_ == Kind::kUnknown) kind_ = kind;
  if (kind != kind_)
    return bad("has the label " + shown(text) + " in " + place + "; labels before it " +
               (number ? "are names" : "are numbers") + ", so make all of one kind");
  if (!number) return add_name(text, place);
  if (*number > limits::kLabel)
    return bad("has the label " + shown(text) + " in " + place + "; labels are 0 to " +
               std::to_string(limits::kLabel));
  labels_.push_back(static_cast<uint32_t>(*number));
  return Status::ok();
}

Status CsvLabels::add_name(std::string_view name, const std::string& place) {
  auto known = names_.find(name);
  if (known == names_.end()) {
    LOCKSTEP_RETURN_IF_ERROR(check_csv_name(name, place));
    if (are_classes_known_)
      return bad("has the label " + shown(name) + " in " + place +
                 ", which no row for training has; correct it, or take the row away");
    if (names_.size() > limits::kLabel)
      return bad("has more than " + std::to_string(limits::kLabel + 1) +
                 " different labels up to " + place + "; is this column the label?");
    known = names_.emplace(name, static_cast<uint32_t>(names_.size())).first;
  }
  labels_.push_back(known->second);
  return Status::ok();
}

std::vector<uint32_t> CsvLabels::take(std::vector<std::string>* classes) {
  std::vector<uint32_t> numbers(names_.size());  // by the order in which names came
  for (const auto& [name, came] : names_) {      // in the order of their bytes
    numbers[came] = static_cast<uint32_t>(classes->size());
    classes->push_back(name);
  }
  if (!numbers.empty())
    for (uint32_t& label : labels_) label = numbers[label];
  return std::move(labels_);
}

}  // namespace lockstep::data
