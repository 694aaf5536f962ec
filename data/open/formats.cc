#include "data/open/formats.h"

#include <algorithm>
#include <iterator>

#include "comm/base/check.h"
#include "comm/run/job/data_formats.h"
#include "data/formats/format_rows.h"

namespace lockstep::data {

std::span<const DataFormat* const> data_formats() {
  return kFormatRows;
}

const DataFormat* find_data_format(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFormatRows), std::end(kFormatRows),
                   [&](const DataFormat* row) { return !name.empty() && row->name == name; });
  return found == std::end(kFormatRows) ? nullptr : *found;
}

Status check_columns(const ColumnNames& columns, const std::string& path,
                     const std::string& format) {
  const auto refused = [&](const std::string& key, const std::string& value,
                           const std::string& why) {
    return Status(Code::kUsage, key + " is " + value + ", but " + path + " is of format " + format +
                                    ", " + why + "; leave " + key + " out");
  };
  const FormatColumns has = named_format(format)->columns;
  const FormatFields fields = fields_of_format(format);
  if (fields == FormatFields::kNone) {
    const std::string has_none = "whose samples have one input and one label";
    if (!columns.inputs.empty()) return refused("data.inputs", columns.inputs.front(), has_none);
    if (!columns.targets.empty()) return refused("data.targets", columns.targets.front(), has_none);
    if (!columns.weight.empty()) return refused("data.weight", columns.weight, has_none);
  }
  if (!columns.label.empty() && (has == FormatColumns::kNone || has == FormatColumns::kInput))
    return refused(
        "data.label", columns.label,
        has == FormatColumns::kNone ? "which has no such columns" : "whose tokens have no label");
  if (!columns.input.empty() && (has == FormatColumns::kNone || has == FormatColumns::kLabel))
    return refused("data.input", columns.input, "which has no such columns");
  return Status::ok();
}

const DataFormat& format_at(const std::string& path, std::string_view format) {
  const DataFormat* row = find_data_format(format);
  LOCKSTEP_CHECK(row != nullptr, "the format is known");
  return row->read_as == nullptr ? *row : *find_data_format(row->read_as(path));
}

}  // namespace lockstep::data
