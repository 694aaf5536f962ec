// Rows of large tables of text, decoded once into a cache directory. All processes of a machine map
// the same copy, so its rows take memory only as pages that the kernel may drop.
//
// A copy stands for all files of a split. Its content, in inflate_cache.h's form, is
//
//     values (4 x features x rows) | lines (4 x rows) | labels (4 x rows)
//     | numbers of each target but the label (4 x rows) | weights (4 x rows, or none)
//     | what the columns, classes and files are, as JSON | bytes of the JSON (8)
//
// in this machine's order of bytes. Making a copy holds all but the values in memory: 8 bytes a
// row, and 4 for each target and weight.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/formats/tables/table_rows.h"

namespace lockstep::data {

// A file of a table, open, and its path for messages.
struct TableFile {
  std::string path;
  MappedFile file;
};

// The text of a table.
std::string_view text_of(const TableFile& table);

// Adds all tables to the reader. Returns the first row of each. kBadData, naming the file.
Result<std::vector<uint64_t>> add_tables(const std::vector<TableFile>& tables,
                                         CsvTableReader& reader, const ProgressFn& progress);

// The rows of `tables`, from their copy. `training`: see CsvTableReader. Errors: kUsage without a
// cache directory; kBadData as CsvTableReader, naming the file; kInternal if the copy cannot be
// written. REQUIRES: there is a table.
Result<TableRows> open_table_copy(const std::vector<TableFile>& tables, const CsvTable* training,
                                  const ColumnNames& columns, const std::string& cache_dir,
                                  const ProgressFn& progress);

}  // namespace lockstep::data
