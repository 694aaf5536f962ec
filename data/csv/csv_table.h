// Rows of features with one label, from one or several tables of text (csv_records.h).
//
// The first record is a header if none of its fields is a number. The label is in the column that
// the job names, else in the one whose name says so (column_names.h), else in the one that
// CsvLabelGuess finds. The other columns are features, in their order, or those that the job names.
//
// A feature is a finite number (csv_numbers.h). Labels are either all whole numbers from 0, or all
// names. The distinct names, in the order of their bytes, are the classes. Blanks around an
// unquoted field do not count.
//
// Several tables follow one after another; all have the same columns. Evaluation data have the same
// columns and the same classes as the training data.
//
// ERRORS: kBadData with line and column and what to do; the message goes on after the file's name.
//
// Thread-safety: values; one thread for each CsvTableReader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/csv/csv_label.h"
#include "data/csv/csv_records.h"

namespace lockstep::data {

struct CsvColumns {
  size_t fields = 0;               // of a record; 0: not known yet
  size_t label = 0;                // which of the fields
  std::vector<std::string> names;  // of all fields; empty: no header
  std::vector<size_t> features;    // which of the fields
  std::string note;                // if the label was guessed

  std::string shown_name(size_t column) const;  // its name, or "column 3"
  // "line 12, column 3 ("age")".
  std::string place(uint64_t line, size_t column) const;
};

struct CsvTable {
  CsvColumns columns;
  std::vector<float> values;         // row after row, without the labels
  std::vector<uint32_t> labels;      // by row
  std::vector<std::string> classes;  // by label, if labels are names
  std::vector<uint32_t> lines;       // by row, its line in its table

  size_t features() const { return columns.features.size(); }
};

class CsvTableReader {
 public:
  // `training`: set to read evaluation data for a model trained on it; it outlives the reader.
  // `wanted`: columns by their names, or by their numbers from 1; several of the input with commas
  // between.
  explicit CsvTableReader(const CsvTable* training = nullptr, ColumnNames wanted = {});

  // Call it with all tables before add(), so that all of them, and not only the first one, say
  // which column is the label.
  void look(std::string_view text) { guess_.look(text); }

  uint64_t rows() const { return table_.labels.size(); }  // so far

  // Adds one more table. After an error, add nothing more.
  Status add(std::string_view text);

  // REQUIRES: add() was called at least once.
  CsvTable finish();

 private:
  enum class Labels { kUnknown, kNumbers, kNames };

  Status begin(const CsvRecord& first, bool* is_header);
  Status choose(CsvColumns columns);
  Status add_row(const CsvRecord& record);
  Status add_feature(const CsvRecord& record, size_t column);
  Status add_label(const CsvRecord& record);
  Status add_name(std::string_view name, const std::string& place);

  const CsvTable* training_;
  ColumnNames wanted_;
  CsvLabelGuess guess_;
  CsvTable table_;
  uint64_t first_line_ = 0;  // of the current table
  Labels kind_ = Labels::kUnknown;
  std::map<std::string, uint32_t, std::less<>> names_;  // numbered in the order of appearance
};

}  // namespace lockstep::data
