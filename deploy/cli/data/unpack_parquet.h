// Decodes the sample columns of Parquet files into Arrow IPC files, and files with a column for
// each feature into tables of text. `lockstep data pack` then reads these like any others. It runs
// lockstep-parquet, one process a file and several at a time.
//
//   TO.unpacked/STAMP/NAME.arrow   (or .csv) one for each NAME.parquet, in the same subdirectories.
//                                  TO is the packed data set: its disk needs room for about as
//                                  much. STAMP stands for the names, sizes and times of the Parquet
//                                  files, and for the columns that the caller wants
//   TO.unpacked/STAMP.cache        what is made of large tables (table_copy.h)
//
// INVARIANTS
//  U1 A file is whole once it has its name. It stays, so a second call makes what is missing.
//  U2 Other files, and files that changed, have another STAMP.
//  U3 This object removes its own STAMP, and TO.unpacked once that is empty, and nothing else.
//
// Thread-safety: the main thread; one process at a time works in TO.unpacked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"

namespace lockstep {

class UnpackedParquet {
 public:
  // Errors name the file. kBadData: damaged, or without a column of samples. kNoInput: unreadable.
  // kUsage: `to` is no directory, or another process works there. kConfig: lockstep-parquet is
  // missing. kInternal: writing failed.
  static Result<UnpackedParquet> make(const std::string& path, const std::string& to,
                                      const data::ColumnNames& wanted, uint32_t threads,
                                      const data::ProgressFn& progress);

  // The path that stands for the Parquet files.
  const std::string& path() const { return path_; }
  bool is_table() const { return is_table_; }
  // A cache directory for readers of these files.
  std::string cache() const { return root_ + ".cache"; }
  // The text with the Parquet files in place of what was decoded from them, for messages.
  std::string with_sources(std::string text) const;
  void remove() const;

 private:
  std::string path_;
  std::string directory_;  // TO.unpacked
  std::string root_;       // in it, of STAMP
  bool is_table_ = false;
  std::vector<std::pair<std::string, std::string>> places_;  // of a decoded file, and its source
  std::unique_ptr<Descriptor> alone_;                        // the lock goes with it
};

}  // namespace lockstep
