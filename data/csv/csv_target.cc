#include "data/csv/csv_target.h"

#include "data/base/file_errors.h"
#include "data/csv/csv_numbers.h"
#include "data/csv/csv_text.h"

namespace lockstep::data {

Status CsvTarget::add(std::string_view text, const std::string& place) {
  if (text.empty()) return bad("has nothing in " + place + "; fill it in, or take the row away");
  if (may_be_classes_) {
    const Status label = labels_.add(text, place);
    const bool is_bound_to = kind_ == CsvTargetKind::kClasses || !are_numbers_;
    if (!label.is_ok() && is_bound_to) return label;
    may_be_classes_ = label.is_ok();
  }
  return are_numbers_ ? add_number(text, place) : Status::ok();
}

Status CsvTarget::add_number(std::string_view text, const std::string& place) {
  const CsvNumber kind = parse_csv_number(text, &numbers_.emplace_back());
  const std::string what = "has " + shown(text) + " in " + place + ", which is ";
  if (kind == CsvNumber::kNotFinite)
    return bad(what + "not a finite number; correct it, or take the row away");
  if (kind == CsvNumber::kTooLarge)
    return bad(what + "beyond the range of float32 (3.4e38); scale the column");
  if (kind == CsvNumber::kFinite) {
    if (kind_ == CsvTargetKind::kWeights && numbers_.back() < 0)
      return bad(what +
                 "negative, but a sample counts with a weight of 0 or more; correct it, or "
                 "name another column in data.weight");
    return Status::ok();
  }
  if (!may_be_classes_)
    return bad(what +
               "not a number, but the column has numbers (with a decimal point, not a "
               "comma); correct it, or take the row away");
  are_numbers_ = false;
  return Status::ok();
}

}  // namespace lockstep::data
