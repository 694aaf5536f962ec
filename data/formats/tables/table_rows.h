// The rows of tables of text, in memory or in a mapped copy (table_copy.h).
//
// Thread-safety: a value; the rows are immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "data/csv/csv_table.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {

struct TableRows {
  CsvTable table;                    // columns and classes; the rest only without a copy
  std::optional<MappedFile> copy;    // what the spans refer to; empty: `table`
  std::vector<uint64_t> first_rows;  // by file
  std::span<const float> values;     // row after row, the features alone
  std::span<const uint32_t> lines;   // by row, and so are labels
  std::span<const uint32_t> labels;
  std::vector<std::span<const float>> targets;  // by columns.targets; empty for the label
  std::span<const float> weights;               // empty: none

  uint64_t size() const { return lines.size(); }
};

inline TableRows rows_in_memory(CsvTable table, std::vector<uint64_t> first_rows) {
  TableRows rows;
  rows.table = std::move(table);
  rows.first_rows = std::move(first_rows);
  rows.values = rows.table.values;
  rows.lines = rows.table.lines;
  rows.labels = rows.table.labels;
  rows.weights = rows.table.weights;
  for (const std::vector<float>& numbers : rows.table.targets) rows.targets.emplace_back(numbers);
  return rows;
}

}  // namespace lockstep::data
