// The files of a data directory, and what their names say.
// Thread-safety: free functions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

// Names of the regular files, sorted, so that messages and choices do not depend on the disk. A
// manifest that lists them (object_names.h) is none of the data.
// kNoInput when it is not there, not a directory, or holds more than limits::kDataDirectoryEntries.
Result<std::vector<std::string>> list_data_files(const std::string& directory);

// Whether one of `words` is a word of `name`, which is cut at whatever is no letter; cases alike.
bool has_word(const std::string& name, std::initializer_list<std::string_view> words);

// "val", "valid", "validation", "test" or "eval" is a word of it: "fineweb_val_000000.bin".
bool is_for_evaluation(const std::string& name);

}  // namespace lockstep::data
