// Weighs the files of a format as evidence for it (data/open/evidence.h).
//
// Thread-safety: free functions.
#pragma once

#include <functional>
#include <string>

#include "data/dataset/format_row.h"

namespace lockstep::data {

using TakesFileFn = std::function<bool(const std::string& path)>;

// Adds the bytes of the file; `name` is the example if there is none yet. Skips a file that cannot
// be read.
void add_weight(const std::string& path, const std::string& name, Evidence& evidence);

// The files that `takes` accepts: those in the directory, or else in the directories of the splits.
Evidence weigh_files(const Listing& directory, const TakesFileFn& takes);

// The same for rows: `weigh = weight_of<is_tar_file>`.
template <bool (*takes)(const std::string&)>
Evidence weight_of(const Listing& directory) {
  return weigh_files(directory, takes);
}

}  // namespace lockstep::data
