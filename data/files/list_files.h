// Lists the files of a data directory, and reads what their names say.
// Thread-safety: free functions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

// Names of the regular files, sorted, so messages and choices do not depend on the disk. Leaves out
// hidden files (hidden_names.h), and a manifest that lists the files (object_names.h). kNoInput if
// the directory is not there, is not a directory, or holds more than limits::kDataDirectoryEntries.
Result<std::vector<std::string>> list_data_files(const std::string& directory);

// True if one of `words` is a word of `name`, in any case. Everything but letters separates words.
bool has_word(const std::string& name, std::initializer_list<std::string_view> words);

// True if "val", "valid", "validation", "test", "testing", "eval" or "evaluation" is a word of
// `name`: "fineweb_val_000000.bin".
bool is_for_evaluation(const std::string& name);

// The same for one of the files of a directory. Beside files called train, "dev" also means
// evaluation.
bool is_for_evaluation(const std::string& name, const std::vector<std::string>& beside);

}  // namespace lockstep::data
