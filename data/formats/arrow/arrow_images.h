// JPEG and PNG images in Arrow files, as extents of these.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/images/extent_index.h"
#include "data/formats/shards/shards.h"

namespace lockstep::data {

// What directories of copies without compression begin with, in a cache directory.
inline constexpr char kArrowCopies[] = "arrow.";

// The samples of one file (shards.h); their `file` is left as it is. kBadData going on after its
// name. REQUIRES of what is not refused: nothing; compressed files are.
Result<std::vector<Extent>> samples_of_arrow(std::span<const uint8_t> file);

// What the first of the files says of the names of classes; none where it says nothing or cannot be
// read, which looking at it tells.
std::vector<std::string> arrow_class_names(const Shards& shards);

// The same files without compression, where the first of them is compressed: copies in a directory
// of `cache_dir`, under their names. Errors as open_dataset().
Result<Shards> inflated_arrow_shards(const Shards& shards, const std::string& cache_dir,
                                     const ProgressFn& progress);

}  // namespace lockstep::data
