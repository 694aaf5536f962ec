// Inflated copies of compressed files, and of compressed members of archives, in a cache directory;
// and what else is made of a whole file once (tokenized_text.h).
//
// A cache file is the inflated content followed by a trailer of kTrailerBytes:
//
//     magic (8) | content bytes (8) | source bytes (8) | source mtime ns (8)
//     | mark of the source (8): its last 8 bytes, where it is compressed CRC-32 and length
//     | XXH3-128 of all before, hex (32)
//
// numbers little-endian. One file, so content and checksum cannot come apart; it appears by rename,
// so a reader sees all of it or nothing.
//
// INVARIANTS
//  K1 What is returned has the checksum of its trailer and belongs to the source as it is now;
//     anything else is made anew.
//  K2 Any number of processes may do this at once: each writes a temporary file of its own, and
//     whichever rename comes last, the content is the same. What is made otherwise than by
//     inflating is made by one of a machine's processes, and the others wait.
//
// Thread-safety: free functions; from any thread and process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/files/gzip.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {

inline constexpr uint64_t kTrailerBytes = 40 + 32;

struct Compressed {
  std::string path;    // of the file
  std::string member;  // of an archive, which the file is then; else empty
  // Inflates it into the sink; kBadData going on after its name.
  std::function<Status(const ByteSink&)> inflate;
  std::string name = {};  // of the copy; empty: made of the two above
  // What is made otherwise than by inflating: how that is called, the ending of its file's name,
  // what it is made by, and 8 bytes instead of the last ones of the source.
  std::string verb = "inflating";
  std::string ending = "inflated";
  std::string means = {};
  std::string mark = {};
  uint64_t room_bytes = limits::kCacheRoomBytes;  // that are left free on the cache's disk
};

// kUsage where there is no cache to inflate `name` into.
Status check_cache(const std::string& cache_dir, const std::string& name);

// Its inflated form; `source` is its file. What is returned ends with the trailer; the content is
// everything before. kBadData when the source is damaged; kInternal when the cache cannot be
// written, or a copy of many bytes would leave less than room_bytes of its disk.
Result<MappedFile> open_inflated(const Compressed& what, const MappedFile& source,
                                 const std::string& cache_dir, const ProgressFn& progress);

// Where open_inflated() keeps it.
std::string inflated_path(const Compressed& what, const std::string& cache_dir);

// Of files some of which may be copies: the content of one, without the trailer if it `is_copy`.
std::span<const uint8_t> content_of(std::span<const uint8_t> file, bool is_copy);

// The name for messages of the i-th file, at `path`: of a copy the name of what it was made from.
std::string shown_name(const std::string& path, const std::map<size_t, std::string>& copied,
                       size_t i);

}  // namespace lockstep::data
