// Chooses which columns of a Parquet file `lockstep data pack` takes.
//
// - The columns that an Arrow file would be read by (arrow_choice.h): images, rows or tokens.
// - Else a table with a column for each feature, if it has a column of numbers apart from what is
//   to be learnt: all columns, or the columns that the caller names. data/csv/csv_table.h then says
//   which is the label.
//
// Thread-safety: a pure function.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/schema.h"
#include "data/base/column_names.h"

namespace lockstep {

struct ParquetColumns {
  bool is_table = false;
  std::vector<size_t> columns;  // rising
};

// kBadData or kUsage: the message goes on after the file's name.
Result<ParquetColumns> parquet_columns(const data::ArrowSchema& schema,
                                       const data::ColumnNames& wanted);

}  // namespace lockstep
