// Inflated copies of gzipped files in a cache directory.
//
// A cache file is the inflated content followed by a trailer of kTrailerBytes:
//
//     magic (8) | content bytes (8) | source bytes (8) | source mtime ns (8)
//     | last 8 bytes of the source: its CRC-32 and length | XXH3-128 of all before, hex (32)
//
// numbers little-endian. One file, so content and checksum cannot come apart; it appears by rename,
// so a reader sees all of it or nothing.
//
// INVARIANTS
//  K1 What is returned has the checksum of its trailer and belongs to the source as it is now;
//     anything else is made anew.
//  K2 Any number of processes may do this at once: each writes a temporary file of its own, and
//     whichever rename comes last, the content is the same.
//
// Thread-safety: free functions; from any thread and process.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/index/dataset.h"
#include "data/index/mapped_file.h"

namespace lockstep::data {

inline constexpr uint64_t kTrailerBytes = 40 + 32;

// The inflated form of the gzipped IDX file `source_path` (mapped as `source`). The file ends with
// the trailer; the content is everything before. kBadData when the source is damaged; kInternal
// when the cache cannot be written.
Result<MappedFile> open_inflated(const std::string& source_path, const MappedFile& source,
                                 const std::string& cache_dir, const ProgressFn& progress);

// Where open_inflated() keeps it.
std::string inflated_path(const std::string& source_path, const std::string& cache_dir);

}  // namespace lockstep::data
