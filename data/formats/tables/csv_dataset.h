// Tables of text as a Dataset of rows: *.csv and *.tsv. data/csv/csv_table.h says what they may
// hold. Tables are small, so Lockstep reads them whole, once, into memory. Later changes to the
// files do not matter to an open dataset.
//
// A path is one file, which serves either split; or a directory; or a directory with a directory
// for each split. File names say which files are for evaluation (shards.h). Evaluation data have
// the columns and the classes of the training data beside them.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/byte_units.h"
#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

inline constexpr uint64_t kCsvBytes = 64 * kMib;  // of all files of a split

// True if the name ends like a table.
bool has_csv_ending(const std::string& path);

// True if there is a table for either split. `path`: a directory.
bool has_csv_files(const std::string& path);

// True if the path has evaluation files that are not training files.
bool has_csv_eval(const std::string& path);

Result<std::unique_ptr<Dataset>> open_csv_dataset(const std::string& path, Split split,
                                                  const ColumnNames& columns,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
