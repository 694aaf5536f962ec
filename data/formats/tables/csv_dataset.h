// Tables of text as a Dataset of rows: *.csv and *.tsv. data/csv/csv_table.h says what they may
// hold. Every process reads small tables into its memory. Lockstep decodes the rows of larger
// tables once into the cache directory, where all processes map them (table_copy.h). Later changes
// to the tables do not matter to an open dataset. The fingerprint is the same either way.
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

inline constexpr uint64_t kCsvBytes = 64 * kMib;  // of all files of a split that memory takes

struct CsvPlace {
  const std::string& cache_dir;
  const ProgressFn& progress;
  uint64_t memory_bytes = kCsvBytes;
};

// True if the name ends like a table.
bool has_csv_ending(const std::string& path);

// True if there is a table for either split. `path`: a directory.
bool has_csv_files(const std::string& path);

// True if the path has evaluation files that are not training files.
bool has_csv_eval(const std::string& path);

Result<std::unique_ptr<Dataset>> open_csv_dataset(const std::string& path, Split split,
                                                  const ColumnNames& columns,
                                                  const CsvPlace& place);

}  // namespace lockstep::data
