// Tells whether files of an index were touched since the index was made.
//
// Thread-safety: free functions and values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

inline constexpr uint64_t kMarkedFiles = 65'536;  // each start looks at them

struct IndexMarks {
  std::vector<uint64_t> marks;  // data/base/change_mark.h, by file; 0: the file is not there
  std::string text;             // all of them, and which index they belong to
};

// Looks at the files as they are now, without reading them. No marks if there are more than
// kMarkedFiles.
Result<IndexMarks> look_at_files(const ExtentIndex& index, const std::string& directory,
                                 uint32_t threads);

// Whether the fingerprint of the index covers all content, at most kWholeContentBytes of it. So
// another look at the content tells whether it changed.
bool covers_all_content(const ExtentIndex& index);

}  // namespace lockstep::data
