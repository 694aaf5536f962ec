// Gzipped IDX files.
// Thread-safety: free functions; any thread and process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/files/gzip.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/idx_header.h"

namespace lockstep::data {

// Inflates a whole IDX file into `sink`, header included. Refuses a file that holds more or fewer
// bytes than its header promises, and never passes on more.
Result<IdxHeader> inflate_idx(std::span<const uint8_t> compressed, const ByteSink& sink);

// The inflated copy of a gzipped IDX file in the cache directory (inflate_cache.h).
Result<MappedFile> open_inflated_idx(const std::string& path, const MappedFile& source,
                                     const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
