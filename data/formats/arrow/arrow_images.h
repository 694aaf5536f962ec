// JPEG and PNG images in Arrow files, as extents of the files.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/formats/images/extent_index.h"
#include "data/formats/shards/shards.h"

namespace lockstep::data {

// Names of directories of uncompressed copies begin with this, in a cache directory.
inline constexpr char kArrowCopies[] = "arrow.";

// The samples of one file (shards.h); it does not set their `file`. kBadData: the message goes on
// after the file's name. Any bytes may be passed; it refuses compressed files.
Result<std::vector<Extent>> samples_of_arrow(std::span<const uint8_t> file,
                                             const ColumnNames& columns = {},
                                             TakenColumns* taken = nullptr);

// The class names in the first file. Empty if the file has none or cannot be read; looking at the
// file reports the error.
std::vector<std::string> arrow_class_names(const Shards& shards, const ColumnNames& columns);

// The same files without compression, if the first file is compressed: copies in a directory of
// `cache_dir`, under the files' names. Errors as open_dataset().
Result<Shards> inflated_arrow_shards(const Shards& shards, const ColumnNames& columns,
                                     const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
