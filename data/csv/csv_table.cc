#include "data/csv/csv_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/text/utf8.h"
#include "data/base/file_errors.h"
#include "data/csv/csv_numbers.h"
#include "data/csv/csv_text.h"

namespace lockstep::data {
namespace {

constexpr size_t kNameBytes = 1'024;  // of a class or a column

bool is_number(const CsvField& field) {
  float ignored = 0;
  return parse_csv_number(csv_text(field), &ignored) != CsvNumber::kNone;
}

Status check_name(std::string_view name, const std::string& place) {
  if (name.empty()) return bad("has no name in " + place + "; give it one");
  if (name.size() > kNameBytes)
    return bad("has a name of " + std::to_string(name.size()) + " bytes in " + place +
               "; the limit is " + std::to_string(kNameBytes));
  if (is_utf8(name)) return Status::ok();
  return bad("has " + shown(name) + " in " + place +
             ", which is not UTF-8; save the file as UTF-8");
}

// "a", "b", "c".
std::string columns_in(const CsvColumns& columns) {
  constexpr size_t kNamesShown = 12;
  if (columns.names.empty()) return std::to_string(columns.fields) + " columns without names";
  std::string text;
  for (size_t i = 0; i < std::min(columns.fields, kNamesShown); ++i)
    text += (i > 0 ? ", " : "") + shown(columns.names[i]);
  const size_t more = columns.fields - std::min(columns.fields, kNamesShown);
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

// By its name, else by its number from 1.
Result<size_t> column_called(const CsvColumns& columns, const std::string& wanted,
                             const std::string& key) {
  const auto found = std::find(columns.names.begin(), columns.names.end(), wanted);
  if (found != columns.names.end()) {
    if (std::count(columns.names.begin(), columns.names.end(), wanted) > 1)
      return bad("has several columns called " + shown(wanted) + ", as " + key +
                 " says; rename the others");
    return static_cast<size_t>(found - columns.names.begin());
  }
  const auto number = parse_csv_count(wanted);
  if (number && *number >= 1 && *number <= columns.fields) return static_cast<size_t>(*number - 1);
  return bad("has no column " + shown(wanted) + ", as " + key + " says; it has " +
             columns_in(columns) + "; name one of them, or its number counted from 1");
}

// The column whose name is that of a label; empty if there is none.
Result<std::optional<size_t>> label_by_name(const std::vector<std::string>& names, uint64_t line) {
  std::optional<size_t> best;
  size_t least = kLabelNames.size();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto rank = label_rank(names[i], {});
    if (!rank || *rank > least) continue;
    if (*rank == least)
      return bad("has several columns called " + std::string(kLabelNames[least]) + " in line " +
                 std::to_string(line) +
                 "; only one can be the label, so rename the others, or set data.label");
    least = *rank;
    best = i;
  }
  return best;
}

Result<CsvColumns> read_header(const CsvRecord& record) {
  CsvColumns columns;
  columns.fields = record.fields.size();
  for (size_t i = 0; i < columns.fields; ++i) {
    const std::string_view name = csv_text(record.fields[i]);
    const std::string place = csv_place(record.line, i);
    if (name.empty())
      return bad("has a column without a name in its header, " + place +
                 "; name it, or leave it out (pandas writes row numbers so: "
                 "to_csv(index=False))");
    LOCKSTEP_RETURN_IF_ERROR(check_name(name, place));
    columns.names.emplace_back(name);
  }
  return columns;
}

}  // namespace

std::string CsvColumns::shown_name(size_t column) const {
  return column < names.size() ? names[column] : "column " + std::to_string(column + 1);
}

std::string CsvColumns::place(uint64_t line, size_t column) const {
  const std::string where = csv_place(line, column);
  return column < names.size() ? where + " (" + shown(names[column]) + ")" : where;
}

CsvTableReader::CsvTableReader(const CsvTable* training, ColumnNames wanted)
    : training_(training), wanted_(std::move(wanted)) {
  if (training_ == nullptr) return;
  table_.columns = training_->columns;
  kind_ = training_->classes.empty() ? Labels::kNumbers : Labels::kNames;
  for (uint32_t i = 0; i < training_->classes.size(); ++i) names_[training_->classes[i]] = i;
}

Status CsvTableReader::add(std::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(CsvRecords records, CsvRecords::open(text));
  CsvRecord record;
  LOCKSTEP_ASSIGN_OR_RETURN(bool has_record, records.next(record));
  if (!has_record) return bad("is empty; a table has a row for each sample");
  if (!guess_.has_looked()) guess_.look(text);
  bool is_header = false;
  LOCKSTEP_RETURN_IF_ERROR(begin(record, &is_header));
  if (is_header) {
    LOCKSTEP_ASSIGN_OR_RETURN(has_record, records.next(record));
    if (!has_record) return bad("has a header and no row; a table has a row for each sample");
  }
  while (has_record) {
    LOCKSTEP_RETURN_IF_ERROR(add_row(record));
    LOCKSTEP_ASSIGN_OR_RETURN(has_record, records.next(record));
  }
  return Status::ok();
}

// Of one table: what its columns are, compared with those before.
Status CsvTableReader::begin(const CsvRecord& first, bool* is_header) {
  first_line_ = first.line;
  const size_t fields = first.fields.size();
  if (fields < 2)
    return bad("has one column in line " + std::to_string(first.line) +
               "; a table has features and a label, with commas, tabs or semicolons between");
  const auto numbers =
      static_cast<size_t>(std::count_if(first.fields.begin(), first.fields.end(), is_number));
  *is_header = is_csv_header(first);
  const std::string last = lower_case(csv_text(first.fields.back()));
  if (numbers + 1 == fields && (last == "label" || last == "target" || last == "class"))
    return bad("has numbers and " + shown(last) + " in line " + std::to_string(first.line) +
               ", which may be a header or a row; name every column, or take the line away");
  CsvColumns columns;
  columns.fields = fields;
  if (*is_header) {
    LOCKSTEP_ASSIGN_OR_RETURN(columns, read_header(first));
  }
  if (table_.columns.fields == 0) return choose(std::move(columns));
  if (columns.fields != table_.columns.fields || columns.names != table_.columns.names)
    return bad(
        "has columns that differ from those of the first table; give all tables, also those of "
        "training, the same columns in the same order, and all a header or none");
  return Status::ok();
}

// Which columns are the label and the features.
Status CsvTableReader::choose(CsvColumns columns) {
  std::optional<size_t> label;
  if (!wanted_.label.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(label, column_called(columns, wanted_.label, "data.label"));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(label, label_by_name(columns.names, first_line_));
  }
  if (!label) {
    LOCKSTEP_ASSIGN_OR_RETURN(const GuessedLabel guessed, guess_.label(!columns.names.empty()));
    label = std::min(guessed.column, columns.fields - 1);
    columns.note = guessed.note;
  }
  columns.label = *label;
  for (size_t i = 0; wanted_.input.empty() && i < columns.fields; ++i)
    if (i != columns.label) columns.features.push_back(i);
  for (size_t begin = 0; !wanted_.input.empty() && begin <= wanted_.input.size();) {
    const size_t end = std::min(wanted_.input.find(',', begin), wanted_.input.size());
    const std::string name(trimmed(std::string_view(wanted_.input).substr(begin, end - begin)));
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t column, column_called(columns, name, "data.input"));
    const auto& taken = columns.features;
    if (column == columns.label || std::find(taken.begin(), taken.end(), column) != taken.end())
      return bad("has " + columns.shown_name(column) + " twice among label and input; name each " +
                 "column once in data.input, and leave the label out");
    columns.features.push_back(column);
    begin = end + 1;
  }
  table_.columns = std::move(columns);
  return Status::ok();
}

Status CsvTableReader::add_row(const CsvRecord& record) {
  if (record.fields.size() != table_.columns.fields)
    return bad("has " + std::to_string(record.fields.size()) + " columns in line " +
               std::to_string(record.line) + ", but " + std::to_string(table_.columns.fields) +
               " in line " + std::to_string(first_line_) +
               "; give every row as many, and put a field with a separator in quotes");
  for (const size_t i : table_.columns.features) LOCKSTEP_RETURN_IF_ERROR(add_feature(record, i));
  LOCKSTEP_RETURN_IF_ERROR(add_label(record));
  table_.lines.push_back(static_cast<uint32_t>(record.line));
  return Status::ok();
}

Status CsvTableReader::add_feature(const CsvRecord& record, size_t column) {
  const std::string_view text = csv_text(record.fields[column]);
  const CsvNumber kind = parse_csv_number(text, &table_.values.emplace_back());
  if (kind == CsvNumber::kFinite) return Status::ok();
  const std::string place = table_.columns.place(record.line, column);
  if (text.empty())
    return bad("has nothing in " + place + "; fill it in, or take the row or the column away");
  const std::string what = "has " + shown(text) + " in " + place + ", which is ";
  if (kind == CsvNumber::kNotFinite)
    return bad(what + "not a finite number; fill it in, or take the row or the column away");
  if (kind == CsvNumber::kTooLarge)
    return bad(what + "beyond the range of float32 (3.4e38); scale the column");
  return bad(what +
             "not a number (with a decimal point, not a comma); write words as numbers, or "
             "take the column away");
}

Status CsvTableReader::add_label(const CsvRecord& record) {
  const size_t column = table_.columns.label;
  const CsvField& field = record.fields[column];
  const std::string_view text = csv_text(field);
  const std::string place = table_.columns.place(record.line, column);
  if (text.empty()) return bad("has no label in " + place + "; fill it in, or take the row away");
  const auto number = parse_csv_count(text);
  if (!number && is_number(field))
    return bad("has the label " + shown(text) + " in " + place +
               "; labels are whole numbers from 0, or names of classes; data.label names another "
               "column");
  const Labels kind = number ? Labels::kNumbers : Labels::kNames;
  if (kind_ == Labels::kUnknown) kind_ = kind;
  if (kind != kind_)
    return bad("has the label " + shown(text) + " in " + place + "; labels before it " +
               (number ? "are names" : "are numbers") + ", so make all of one kind");
  if (!number) return add_name(text, place);
  if (*number > limits::kLabel)
    return bad("has the label " + shown(text) + " in " + place + "; labels are 0 to " +
               std::to_string(limits::kLabel));
  table_.labels.push_back(static_cast<uint32_t>(*number));
  return Status::ok();
}

Status CsvTableReader::add_name(std::string_view name, const std::string& place) {
  auto known = names_.find(name);
  if (known == names_.end()) {
    LOCKSTEP_RETURN_IF_ERROR(check_name(name, place));
    if (training_ != nullptr)
      return bad("has the label " + shown(name) + " in " + place +
                 ", which no row for training has; correct it, or take the row away");
    if (names_.size() > limits::kLabel)
      return bad("has more than " + std::to_string(limits::kLabel + 1) +
                 " different labels up to " + place + "; is this column the label?");
    known = names_.emplace(name, static_cast<uint32_t>(names_.size())).first;
  }
  table_.labels.push_back(known->second);
  return Status::ok();
}

CsvTable CsvTableReader::finish() {
  LOCKSTEP_CHECK(!table_.labels.empty(), "a table without a row was taken");
  std::vector<uint32_t> numbers(names_.size());  // by the order in which names came
  for (const auto& [name, came] : names_) {      // in the order of their bytes
    numbers[came] = static_cast<uint32_t>(table_.classes.size());
    table_.classes.push_back(name);
  }
  if (!numbers.empty())
    for (uint32_t& label : table_.labels) label = numbers[label];
  return std::move(table_);
}

}  // namespace lockstep::data
