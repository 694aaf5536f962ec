#include "data/csv/csv_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "comm/base/text/utf8.h"
#include "data/base/file_errors.h"
#include "data/csv/csv_label.h"
#include "data/csv/csv_numbers.h"
#include "data/csv/csv_text.h"

namespace lockstep::data {
namespace {

constexpr size_t kValuesAtOnce = 262'144;  // of a piece that is given away

bool is_number(const CsvField& field) {
  float ignored = 0;
  return parse_csv_number(csv_text(field), &ignored) != CsvNumber::kNone;
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

// The column with the name of a label; empty if there is none.
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
    LOCKSTEP_RETURN_IF_ERROR(check_csv_name(name, place));
    columns.names.emplace_back(name);
  }
  return columns;
}

// Says what a first record that counts the columns is taken for.
std::string header_text(const CsvRecord& first, bool is_header) {
  const size_t last = first.fields.size() - 1;
  return "line " + std::to_string(first.line) + ", 0" +
         (last > 0 ? " to " + std::to_string(last) : "") + ", is taken for a " +
         (is_header ? "header, as pandas writes it; if it is a row, put a line of names before it"
                    : "row; if it is a header, as pandas writes it, name the columns there, or "
                      "take the line away");
}

}  // namespace

std::vector<std::string> input_names(const ColumnNames& wanted) {
  std::vector<std::string> names = wanted.inputs;
  const std::string_view input = names.empty() ? std::string_view(wanted.input) : "";
  for (size_t begin = 0; !input.empty() && begin <= input.size();) {
    const size_t end = std::min(input.find(',', begin), input.size());
    names.emplace_back(trimmed(input.substr(begin, end - begin)));
    begin = end + 1;
  }
  return names;
}

std::string CsvColumns::shown_name(size_t column) const {
  return column < names.size() ? names[column] : "column " + std::to_string(column + 1);
}

std::string CsvColumns::place(uint64_t line, size_t column) const {
  const std::string where = csv_place(line, column);
  return column < names.size() ? where + " (" + shown(names[column]) + ")" : where;
}

CsvTableReader::CsvTableReader(const CsvTable* training, ColumnNames wanted)
    : training_(training),
      wanted_(std::move(wanted)),
      labels_(training == nullptr ? nullptr : &training->classes) {
  if (training_ == nullptr) return;
  table_.columns = training_->columns;
  table_.columns.header.clear();
  follow();
}

// Makes the readers of targets and weights, once the columns are known.
void CsvTableReader::follow() {
  const CsvColumns& columns = table_.columns;
  for (size_t i = 0; i < columns.targets.size(); ++i) {
    const bool is_label = training_ != nullptr && columns.targets[i] == columns.label;
    CsvTargetKind kind = CsvTargetKind::kEither;
    if (training_ != nullptr) kind = is_label ? CsvTargetKind::kClasses : CsvTargetKind::kNumbers;
    if (wanted_.are_numbers) kind = CsvTargetKind::kNumbers;
    targets_.emplace_back(columns.targets[i], kind, is_label ? &training_->classes : nullptr);
  }
  if (columns.weight != kNoCsvColumn)
    weights_.emplace(columns.weight, CsvTargetKind::kWeights, nullptr);
}

Status CsvTableReader::add(std::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(CsvRecords records, CsvRecords::open(text));
  CsvRecord record;
  LOCKSTEP_ASSIGN_OR_RETURN(bool has_record, records.next(record));
  if (!has_record) return bad("is empty; a table has a row for each sample");
  if (looked_at_.empty()) look(text);
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

// Finds the columns of a table, and compares them with the columns of the tables before.
Status CsvTableReader::begin(const CsvRecord& first, bool* is_header) {
  first_line_ = first.line;
  const size_t fields = first.fields.size();
  if (fields < 2 && !wanted_.may_lack_answers)
    return bad("has one column in line " + std::to_string(first.line) +
               "; a table has features and a label, with commas, tabs or semicolons between");
  const auto numbers =
      static_cast<size_t>(std::count_if(first.fields.begin(), first.fields.end(), is_number));
  *is_header = wanted_.has_header || is_csv_header(first);
  const std::string last = lower_case(csv_text(first.fields.back()));
  if (!wanted_.has_header && numbers + 1 == fields &&
      (last == "label" || last == "target" || last == "class"))
    return bad("has numbers and " + shown(last) + " in line " + std::to_string(first.line) +
               ", which may be a header or a row; name every column, or take the line away");
  CsvColumns columns;
  columns.fields = fields;
  if (*is_header) {
    LOCKSTEP_ASSIGN_OR_RETURN(columns, read_header(first));
  }
  const bool is_told = !wanted_.has_header && counts_columns(first);
  if (is_told) columns.header = header_text(first, *is_header);
  if (table_.columns.fields == 0) return choose(std::move(columns));
  if (columns.fields != table_.columns.fields || columns.names != table_.columns.names)
    return bad(
        "has columns that differ from those of the first table; give all tables, also those of "
        "training, the same columns in the same order, and all a header or none");
  if (table_.columns.header.empty()) table_.columns.header = columns.header;
  return Status::ok();
}

// Which columns are the label or the targets, the weight, and the features.
Status CsvTableReader::choose(CsvColumns columns) {
  if (wanted_.may_lack_answers)
    LOCKSTEP_RETURN_IF_ERROR(ignore_answers(&columns));
  else
    LOCKSTEP_RETURN_IF_ERROR(wanted_.targets.empty() ? choose_label(&columns)
                                                     : choose_targets(&columns));
  if (!wanted_.weight.empty() && !wanted_.may_lack_answers) {
    LOCKSTEP_ASSIGN_OR_RETURN(columns.weight,
                              column_called(columns, wanted_.weight, "data.weight"));
    if (columns.is_answer(columns.weight))
      return bad("has " + columns.shown_name(columns.weight) +
                 " as a weight and as what is to be learnt; name another column in data.weight");
  }
  LOCKSTEP_RETURN_IF_ERROR(choose_features(&columns));
  table_.columns = std::move(columns);
  follow();
  return Status::ok();
}

Status CsvTableReader::choose_label(CsvColumns* columns) {
  std::optional<size_t> label;
  if (!wanted_.label.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(label, column_called(*columns, wanted_.label, "data.label"));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(label, label_by_name(columns->names, first_line_));
  }
  if (!label) {
    CsvLabelGuess guess;
    for (const std::string_view text : looked_at_) guess.look(text, wanted_.has_header);
    LOCKSTEP_ASSIGN_OR_RETURN(const GuessedLabel guessed, guess.label(!columns->names.empty()));
    label = std::min(guessed.column, columns->fields - 1);
    columns->note = guessed.note;
  }
  columns->label = *label;
  return Status::ok();
}

Status CsvTableReader::choose_targets(CsvColumns* columns) {
  for (const std::string& name : wanted_.targets) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t column, column_called(*columns, name, "data.targets"));
    if (columns->is_answer(column))
      return bad("has " + columns->shown_name(column) +
                 " twice among the targets; name each column once in data.targets");
    columns->targets.push_back(column);
  }
  return Status::ok();
}

// Ignores the columns that training would learn, where the table has them.
Status CsvTableReader::ignore_answers(CsvColumns* columns) {
  std::vector<std::string> names = wanted_.targets;
  names.insert(names.end(), {wanted_.label, wanted_.weight});
  for (const std::string& name : names) {
    const auto found = std::find(columns->names.begin(), columns->names.end(), name);
    if (found != columns->names.end())
      columns->ignored.push_back(static_cast<size_t>(found - columns->names.begin()));
  }
  if (!wanted_.targets.empty() || !wanted_.label.empty()) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto label, label_by_name(columns->names, first_line_));
  if (label) columns->ignored.push_back(*label);
  return Status::ok();
}

Status CsvTableReader::choose_features(CsvColumns* columns) {
  const std::vector<std::string> names = input_names(wanted_);
  for (size_t i = 0; names.empty() && i < columns->fields; ++i)
    if (!columns->is_answer(i) && i != columns->weight) columns->features.push_back(i);
  const std::string key = wanted_.inputs.empty() ? "data.input" : "data.inputs";
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t column, column_called(*columns, name, key));
    const auto& taken = columns->features;
    if (columns->is_answer(column) || column == columns->weight ||
        std::find(taken.begin(), taken.end(), column) != taken.end())
      return bad("has " + columns->shown_name(column) +
                 " twice among label and input, or targets and weight; name each column once, and "
                 "leave what is to be learnt out of " +
                 key);
    columns->features.push_back(column);
  }
  if (!columns->features.empty()) return Status::ok();
  return bad(
      "has no column left for the model: data.targets and data.weight name them all; leave "
      "one out");
}

Status CsvTableReader::add_row(const CsvRecord& record) {
  if (record.fields.size() != table_.columns.fields)
    return bad("has " + std::to_string(record.fields.size()) + " columns in line " +
               std::to_string(record.line) + ", but " + std::to_string(table_.columns.fields) +
               " in line " + std::to_string(first_line_) +
               "; give every row as many, and put a field with a separator in quotes");
  if (record.line > UINT32_MAX)
    return bad("has more than " + std::to_string(UINT32_MAX) +
               " lines; cut it into several tables in one directory");
  for (const size_t i : table_.columns.features) LOCKSTEP_RETURN_IF_ERROR(add_feature(record, i));
  const auto add_to = [&](auto& taker, size_t column) {
    return taker.add(csv_text(record.fields[column]), table_.columns.place(record.line, column));
  };
  if (targets_.empty() && !wanted_.may_lack_answers)
    LOCKSTEP_RETURN_IF_ERROR(add_to(labels_, table_.columns.label));
  for (CsvTarget& target : targets_) LOCKSTEP_RETURN_IF_ERROR(add_to(target, target.column()));
  if (weights_) LOCKSTEP_RETURN_IF_ERROR(add_to(*weights_, weights_->column()));
  table_.lines.push_back(static_cast<uint32_t>(record.line));
  return give_values(kValuesAtOnce);
}

// Passes the values on if there are at least so many.
Status CsvTableReader::give_values(size_t at_least) {
  if (!take_values_ || table_.values.size() < at_least) return Status::ok();
  Status status = take_values_(table_.values);
  table_.values.clear();
  return status;
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

Result<CsvTable> CsvTableReader::finish() {
  LOCKSTEP_CHECK(!table_.lines.empty(), "a table without a row was taken");
  LOCKSTEP_RETURN_IF_ERROR(give_values(1));
  if (wanted_.may_lack_answers)
    table_.labels.resize(table_.lines.size(), 0);
  else if (targets_.empty())
    table_.labels = labels_.take(&table_.classes);
  else
    LOCKSTEP_RETURN_IF_ERROR(finish_targets());
  if (weights_) table_.weights = weights_->numbers();
  return std::move(table_);
}

// The first target that can be classes is the label, all others are numbers.
Status CsvTableReader::finish_targets() {
  CsvColumns& columns = table_.columns;
  for (const CsvTarget& target : targets_)
    if (training_ == nullptr && columns.label == kNoCsvColumn && target.may_be_classes())
      columns.label = target.column();
  for (CsvTarget& target : targets_) {
    const bool is_label = target.column() == columns.label;
    if (!is_label && !target.are_numbers())
      return bad("has names in " + columns.shown_name(target.column()) + ", but " +
                 columns.shown_name(columns.label) +
                 " is the label already, since it stands first, and other targets are numbers; put "
                 "the classes first in data.targets, or leave one out");
    if (is_label) table_.labels = target.labels().take(&table_.classes);
    table_.targets.push_back(is_label ? std::vector<float>() : target.numbers());
  }
  if (table_.labels.empty()) table_.labels.resize(table_.lines.size(), 0);
  return Status::ok();
}

}  // namespace lockstep::data
