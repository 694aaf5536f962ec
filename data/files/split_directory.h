// A data set with a directory for each split: `train`, and one for evaluation. The evaluation
// directory is the first that exists of `val`, `valid`, `validation`, `test`, `eval`.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "data/base/split.h"

namespace lockstep::data {

bool has_split_directories(const std::string& path);

// REQUIRES: has_split_directories(path).
std::string split_directory(const std::string& path, Split split);

}  // namespace lockstep::data
