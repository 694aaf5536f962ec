// A data set with a directory for each split, in any case: one for training (`train`, `training`),
// and one for evaluation. The evaluation directory is the first that exists of `val`, `valid`,
// `validation`, `dev`, `test`, `testing`, `eval`, `evaluation`.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "data/base/split.h"

namespace lockstep::data {

bool has_split_directories(const std::string& path);

// REQUIRES: has_split_directories(path).
std::string split_directory(const std::string& path, Split split);

// True if a directory of this name holds a split, as above; also `trn` and the like, which are
// taken for no split without being named.
bool is_named_like_split(const std::string& name);

}  // namespace lockstep::data
