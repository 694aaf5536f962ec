// Rows of features with one label, from one or several tables of text (csv_records.h).
//
// The first record is a header where no field of it is a number. Then the label is in the column
// called `label`, or else `target`, `class` or `y`, in whatever case; without a header, or a column
// of such a name, in the last one. The other columns are features, in their order.
//
// A feature is a finite number (csv_numbers.h). Labels are whole numbers from 0, or names, of which
// the distinct ones in the order of their bytes are the classes: all of one kind. Blanks around
// what is not quoted do not count.
//
// Several tables are one after another; all have the same columns. Data for evaluation follow those
// for training: the same columns, and the same classes.
//
// ERRORS: kBadData going on after the file's name, with line and column and what to do.
//
// Thread-safety: values; of a CsvTableReader none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/csv/csv_records.h"

namespace lockstep::data {

struct CsvColumns {
  size_t fields = 0;               // of a record; 0: none is known yet
  size_t label = 0;                // which of them
  std::vector<std::string> names;  // of all fields; empty: there is no header

  // "line 12, column 3 ("age")".
  std::string place(uint64_t line, size_t column) const;
};

struct CsvTable {
  CsvColumns columns;
  std::vector<float> values;         // row after row, without the labels
  std::vector<uint32_t> labels;      // by row
  std::vector<std::string> classes;  // by label, where labels are names
  std::vector<uint32_t> lines;       // by row, where it stands in its table

  size_t features() const { return columns.fields - 1; }
};

class CsvTableReader {
 public:
  // `training`: what is read is for the evaluation of a model trained on it. It outlives this.
  explicit CsvTableReader(const CsvTable* training = nullptr);

  uint64_t rows() const { return table_.labels.size(); }  // so far

  // One table more. After an error nothing more may be added.
  Status add(std::string_view text);

  // REQUIRES: one was added at least.
  CsvTable finish();

 private:
  enum class Labels { kUnknown, kNumbers, kNames };

  Status begin(const CsvRecord& first, bool* is_header);
  Status add_row(const CsvRecord& record);
  Status add_feature(const CsvRecord& record, size_t column);
  Status add_label(const CsvRecord& record);
  Status add_name(std::string_view name, const std::string& place);

  const CsvTable* training_;
  CsvTable table_;
  uint64_t first_line_ = 0;  // of the table that is read
  Labels kind_ = Labels::kUnknown;
  std::map<std::string, uint32_t, std::less<>> names_;  // in the order in which they come
};

}  // namespace lockstep::data
