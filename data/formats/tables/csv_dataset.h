// Tables of text as a Dataset of rows: *.csv and *.tsv, of which data/csv/csv_table.h says what
// they may hold. They are small, and so are read whole, once, into memory; what becomes of the
// files afterwards does not matter to what has opened them.
//
// A path is one file, which serves either split, or a directory, or one with a directory for each
// split; the names of files say which are for evaluation (shards.h). Data for evaluation have the
// columns and the classes of those for training that lie with them.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

inline constexpr uint64_t kCsvBytes = uint64_t{64} << 20;  // of all files of a split

// Whether its name says that it is one.
bool has_csv_ending(const std::string& path);

// Whether there is one for either split. `path`: a directory.
bool has_csv_files(const std::string& path);

// Whether the path has files for evaluation that are none for training.
bool has_csv_eval(const std::string& path);

Result<std::unique_ptr<Dataset>> open_csv_dataset(const std::string& path, Split split,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
