#include "deploy/cli/data/parquet_columns.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "data/base/file_errors.h"
#include "data/csv/csv_table.h"
#include "data/formats/arrow/arrow_choice.h"

namespace lockstep {
namespace {

using data::ArrowField;
using data::ArrowKind;
using data::ArrowSchema;
using data::ColumnNames;

bool is_number(const ArrowField& field) {
  if (field.is_dictionary) return false;
  const bool has_width = field.kind == ArrowKind::kInt || field.kind == ArrowKind::kFloat;
  return has_width || field.type_text == "bool" || field.type_text == "decimal";
}

bool is_word(const ArrowField& field) {
  return field.is_dictionary || field.type_text == "string" || field.type_text == "large_string";
}

// Images, lists and structs: whatever this is, it is no table.
bool is_compound(const ArrowField& field) {
  return !is_number(field) && !is_word(field) && field.kind != ArrowKind::kOther;
}

std::vector<std::string> answers_of(const ColumnNames& wanted) {
  std::vector<std::string> names = wanted.targets;
  if (!wanted.label.empty()) names.push_back(wanted.label);
  return names;
}

// Nothing unless the caller names all of input and answers by their names.
std::optional<std::vector<size_t>> named_columns(const ArrowSchema& schema,
                                                 const ColumnNames& wanted) {
  std::vector<std::string> names = data::input_names(wanted);
  const std::vector<std::string> answers = answers_of(wanted);
  if (names.empty() || answers.empty()) return std::nullopt;
  names.insert(names.end(), answers.begin(), answers.end());
  if (!wanted.weight.empty()) names.push_back(wanted.weight);
  std::set<size_t> columns;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(schema.fields, name, &ArrowField::name);
    if (found == schema.fields.end()) return std::nullopt;
    columns.insert(static_cast<size_t>(found - schema.fields.begin()));
  }
  return std::vector<size_t>(columns.begin(), columns.end());
}

// Numbers besides what is to be learnt.
size_t features_in(const ArrowSchema& schema, const ColumnNames& wanted) {
  const std::vector<std::string> answers = answers_of(wanted);
  return static_cast<size_t>(std::ranges::count_if(schema.fields, [&](const ArrowField& field) {
    const bool is_answer = data::label_rank(field.name, wanted).has_value() ||
                           std::ranges::find(answers, field.name) != answers.end() ||
                           field.name == wanted.weight;
    return is_number(field) && !is_answer;
  }));
}

// Whether a column that is called like tokens is one of several features.
bool is_a_feature(const ArrowSchema& schema, const ColumnNames& wanted,
                  const data::ArrowChoice& choice) {
  const bool has_label = std::ranges::any_of(schema.fields, [&](const ArrowField& field) {
    return data::label_rank(field.name, wanted).has_value();
  });
  return choice.use == data::ArrowUse::kTokens && !is_list(schema.fields[choice.samples]) &&
         wanted.input.empty() && has_label && features_in(schema, wanted) > 1;
}

}  // namespace

Result<ParquetColumns> parquet_columns(const ArrowSchema& schema, const ColumnNames& wanted) {
  const auto choice = data::choose_columns(schema, wanted);
  if (choice.is_ok() && !is_a_feature(schema, wanted, *choice)) {
    ParquetColumns chosen{false, {choice->samples}};
    if (choice->use != data::ArrowUse::kTokens) chosen.columns.push_back(choice->label);
    std::ranges::sort(chosen.columns);
    return chosen;
  }
  const auto named = named_columns(schema, wanted);
  const bool may_be_table = named.has_value() || (features_in(schema, wanted) > 0 &&
                                                  !std::ranges::any_of(schema.fields, is_compound));
  if (!may_be_table) return choice.status();
  ParquetColumns table{true, named.value_or(std::vector<size_t>())};
  for (size_t i = 0; !named && i < schema.fields.size(); ++i) table.columns.push_back(i);
  for (const size_t column : table.columns) {
    const ArrowField& field = schema.fields[column];
    if (is_number(field) || is_word(field)) continue;
    return data::bad("has column " + field.name + " of type " + field.type_text +
                     ", which is no number and no word; write it as one, leave it out, or name "
                     "the columns to take by --input a,b and --label c");
  }
  return table;
}

}  // namespace lockstep
