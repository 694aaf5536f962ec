#include "data/csv/csv_label.h"

#include <algorithm>
#include <cstdint>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/csv/csv_numbers.h"
#include "data/csv/csv_text.h"

namespace lockstep::data {
namespace {

bool is_csv_number(const CsvField& field) {
  float ignored = 0;
  return parse_csv_number(csv_text(field), &ignored) != CsvNumber::kNone;
}

std::string share_text(uint64_t classes, uint64_t rows) {
  if (classes == 0) return "whose values are no labels";
  if (classes > limits::kLabel) return "with too many different values for classes";
  return "with " + std::to_string(classes) + (classes == 1 ? " class in " : " classes in ") +
         std::to_string(rows) + " rows";
}

}  // namespace

bool counts_columns(const CsvRecord& record) {
  for (size_t i = 0; i < record.fields.size(); ++i)
    if (csv_text(record.fields[i]) != std::to_string(i)) return false;
  return true;
}

// A short row of values can count 0, 1, too, so a header that counts has three columns or more.
bool is_csv_header(const CsvRecord& record) {
  constexpr size_t kFewestCounted = 3;
  return (record.fields.size() >= kFewestCounted && counts_columns(record)) ||
         std::none_of(record.fields.begin(), record.fields.end(), is_csv_number);
}

void CsvLabelGuess::Column::look(const CsvField& field) {
  if (!is_possible) return;
  const std::string_view text = csv_text(field);
  const auto number = parse_csv_class(text);
  is_possible = !text.empty() && (number || !is_csv_number(field)) &&
                are_names.value_or(!number) == !number && number.value_or(0) <= limits::kLabel &&
                names.size() <= limits::kLabel + size_t{1};
  if (!is_possible) return;
  are_names = !number;
  if (number)
    largest = std::max(largest, static_cast<uint32_t>(*number));
  else if (names.find(text) == names.end())
    names.emplace(text);
}

uint64_t CsvLabelGuess::Column::classes() const {
  if (!is_possible || !are_names) return 0;
  return *are_names ? names.size() : largest + uint64_t{1};
}

bool CsvLabelGuess::Column::fits(uint64_t rows) const {
  return classes() > 1 && classes() < rows && classes() <= limits::kLabel + uint64_t{1};
}

void CsvLabelGuess::look(std::string_view text, bool has_header) {
  auto records = CsvRecords::open(text);
  if (!records.is_ok()) return;
  CsvRecord record;
  size_t fields = 0;
  for (bool is_first = true;; is_first = false) {
    const auto more = records->next(record);
    if (more.is_ok() && !*more) return;
    if (is_first) fields = record.fields.size();
    if (!more.is_ok() || record.fields.empty() || record.fields.size() != fields) {
      first_.is_possible = last_.is_possible = false;
      return;
    }
    if (is_first && (has_header || is_csv_header(record))) continue;
    ++rows_;
    first_.look(record.fields.front());
    last_.look(record.fields.back());
  }
}

Result<GuessedLabel> CsvLabelGuess::label(bool has_header) const {
  const std::string why = has_header ? "no column has the name of a label" : "there is no header";
  const std::string how = has_header ? "data.label names another"
                                     : "data.label names another by its number, counted from 1";
  if (last_.fits(rows_))
    return GuessedLabel{SIZE_MAX, "the last column, since " + why + "; " + how};
  if (!has_header && first_.fits(rows_))
    return GuessedLabel{0, "the first column, since " + why + " and the last column, " +
                               share_text(last_.classes(), rows_) + ", is no label; " + how};
  // The reader names the line with the value that is no label.
  if (!last_.is_possible)
    return GuessedLabel{SIZE_MAX, "the last column, since " + why + "; " + how};
  return bad("does not say which column is the label: " + why + ", and the last column, " +
             share_text(last_.classes(), rows_) + ", cannot be it; set data.label to the " +
             (has_header ? "name of the column"
                         : "number of the column, counted from 1, or give the table a header"));
}

}  // namespace lockstep::data
