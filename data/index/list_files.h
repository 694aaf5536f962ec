// The files of a data directory.
// Thread-safety: a free function.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

// Names of the regular files, sorted, so that messages and choices do not depend on the disk.
// kNoInput when it is not there, not a directory, or holds more than limits::kDataDirectoryEntries.
Result<std::vector<std::string>> list_data_files(const std::string& directory);

}  // namespace lockstep::data
