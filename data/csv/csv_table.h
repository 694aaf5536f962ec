// Rows of features with one label, from one or several tables of text (csv_records.h).
//
// The first record is a header if none of its fields is a number, or if it counts three columns or
// more from 0, as pandas does, or if the caller knows that it is one. CsvColumns::header says what
// was made of a first record that counts.
// The label is in the column that the job names, else in the one whose name says so
// (column_names.h), else in the one that CsvLabelGuess finds. The features are the other columns,
// in their order, or the columns that the job names.
//
// A feature is a finite number (csv_numbers.h), and labels are as csv_labels.h has them. Blanks
// around an unquoted field do not count.
//
// Where the job names targets, these are columns of numbers, and the first one whose values can be
// classes (csv_target.h) is the label. A table whose targets are all numbers has no label.
//
// Several tables follow one after another; all have the same columns. Evaluation data have the same
// columns and the same classes as the training data.
//
// ERRORS: kBadData with line and column and what to do; the message goes on after the file's name.
//
// Thread-safety: values; one thread for each CsvTableReader.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/csv/csv_labels.h"
#include "data/csv/csv_records.h"
#include "data/csv/csv_target.h"

namespace lockstep::data {

inline constexpr size_t kNoCsvColumn = SIZE_MAX;

struct CsvColumns {
  size_t fields = 0;               // of a record; 0: not known yet
  size_t label = kNoCsvColumn;     // which of the fields; none: of numbers only
  std::vector<std::string> names;  // of all fields; empty: no header
  std::vector<size_t> features;    // which of the fields
  std::vector<size_t> targets;     // as the job names them, the label among them; empty: none
  size_t weight = kNoCsvColumn;    // as the job names it
  std::vector<size_t> ignored;     // of a table without answers: columns that would be answers
  std::string note;                // if the label was guessed
  std::string header;              // what 0, 1 ... in the first line was taken for, or empty

  // True if the column is the label or a target, or would be one.
  bool is_answer(size_t column) const {
    const auto is_in = [column](const std::vector<size_t>& some) {
      return std::find(some.begin(), some.end(), column) != some.end();
    };
    return column == label || is_in(targets) || is_in(ignored);
  }
  std::string shown_name(size_t column) const;  // its name, or "column 3"
  // "line 12, column 3 ("age")".
  std::string place(uint64_t line, size_t column) const;
};

struct CsvTable {
  CsvColumns columns;
  std::vector<float> values;                // row after row, the features alone; empty if given
  std::vector<uint32_t> labels;             // by row; 0 without a label
  std::vector<std::string> classes;         // by label, if labels are names
  std::vector<std::vector<float>> targets;  // by columns.targets, then by row; empty for the label
  std::vector<float> weights;               // by row; empty: none
  std::vector<uint32_t> lines;              // by row, its line in its table

  size_t features() const { return columns.features.size(); }
};

// The columns of the input that the caller names, one by one or with commas between; empty: none.
std::vector<std::string> input_names(const ColumnNames& wanted);

class CsvTableReader {
 public:
  // `training`: set to read evaluation data for a model trained on it; it outlives the reader.
  // `wanted`: columns by their names, or by their numbers from 1; several of the input with commas
  // between.
  explicit CsvTableReader(const CsvTable* training = nullptr, ColumnNames wanted = {});

  // Call it with all tables before add(), so that all of them, and not only the first one, say
  // which column is the label, if neither job nor header does. The text outlives the first add().
  void look(std::string_view text) { looked_at_.push_back(text); }

  // For tables that are too large for memory: gives the values away, piece by piece and in order,
  // where CsvTable would hold them. An error of `take` ends add() or finish().
  using TakeValuesFn = std::function<Status(std::span<const float>)>;
  void give_values_to(TakeValuesFn take) { take_values_ = std::move(take); }

  uint64_t rows() const { return table_.lines.size(); }  // so far

  // Adds one more table. After an error, add nothing more.
  Status add(std::string_view text);

  // kBadData if a target other than the label has names. REQUIRES: add() was called at least once.
  Result<CsvTable> finish();

 private:
  Status begin(const CsvRecord& first, bool* is_header);
  Status choose(CsvColumns columns);
  Status choose_label(CsvColumns* columns);
  Status choose_targets(CsvColumns* columns);
  Status ignore_answers(CsvColumns* columns);
  Status choose_features(CsvColumns* columns);
  void follow();
  Status add_row(const CsvRecord& record);
  Status add_feature(const CsvRecord& record, size_t column);
  Status give_values(size_t at_least);
  Status finish_targets();

  const CsvTable* training_;
  ColumnNames wanted_;
  std::vector<std::string_view> looked_at_;
  TakeValuesFn take_values_;
  CsvTable table_;
  uint64_t first_line_ = 0;         // of the current table
  CsvLabels labels_;                // of a table without named targets
  std::vector<CsvTarget> targets_;  // by columns.targets
  std::optional<CsvTarget> weights_;
};

}  // namespace lockstep::data
