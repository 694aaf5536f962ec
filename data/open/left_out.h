// Files of a directory that a data set of another format than image folders does not take.
//
// Thread-safety: a free function.
#pragma once

#include <string>
#include <vector>

#include "data/base/source_notes.h"

namespace lockstep::data {

// `taken`: names or paths of files that the data set has; files with their endings are alike. Files
// in directories below, other than the directories of splits, may be data if they end like a taken
// file. Returns nothing for a path that is no directory.
FilesLeftOut files_left_out(const std::string& path, const std::vector<std::string>& taken);

}  // namespace lockstep::data
