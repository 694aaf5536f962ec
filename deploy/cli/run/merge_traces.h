// Merges the timelines of all ranks of a run into one file.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

// Writes RUN_DIR/trace/all.json from the files rank-*.json in the same directory. Returns its
// path, or an empty one if there is nothing to merge. kBadData if a file is damaged.
Result<std::string> merge_traces(const std::string& run_dir);

}  // namespace lockstep
