// The timelines of all ranks of a run in one file.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

// Makes RUN_DIR/trace/all.json of the files rank-*.json beside it; the path, or empty where there
// is none to merge. kBadData: one of them is damaged.
Result<std::string> merge_traces(const std::string& run_dir);

}  // namespace lockstep
