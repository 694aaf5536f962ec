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

// Inflates a whole IDX file into `sink`, header included: exactly as many bytes as its header
// promises, never more (a file that holds more or less is refused).
Result<IdxHeader> inflate_idx(std::span<const uint8_t> compressed, const ByteSink& sink);

// The inflated copy in the cache directory (inflate_cache.h) of a gzipped IDX file.
Result<MappedFile> open_inflated_idx(const std::string& path, const MappedFile& source,
                                     const std::string& cache_dir, const ProgressFn& progress);

}  // namespace lockstep::data
