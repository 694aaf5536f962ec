// Inflated copies of compressed files, and of compressed members of archives, in a cache directory.
// Also other things made once of a whole file (tokenized_text.h).
//
// A cache file is the inflated content followed by a trailer of kTrailerBytes:
//
//     magic (8) | content bytes (8) | source bytes (8) | source mtime ns (8)
//     | mark of the source's content (8) | XXH3-128 of all before, hex (32)
//
// Numbers are little-endian. Content and checksum share one file, so they cannot come apart. The
// file appears by rename, so a reader sees all of it or nothing.
//
// INVARIANTS
//  K1 A returned copy has the checksum of its trailer and belongs to the source as it is now.
//     Lockstep makes any other copy again.
//  K2 Any number of processes may do this at once. Each writes a temporary file of its own, and the
//     content is the same whichever rename comes last. For copies not made by inflating, one
//     process of a machine makes the copy, and the others wait.
//
// Thread-safety: free functions; from any thread and process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/files/gzip.h"
#include "data/files/mapped_file.h"

namespace lockstep::data {

inline constexpr uint64_t kTrailerBytes = 40 + 32;

struct Compressed {
  std::string path;    // of the file
  std::string member;  // of an archive, if the file is one; else empty
  // Inflates it into the sink. kBadData: the message goes on after its name.
  std::function<Status(const ByteSink&)> inflate;
  std::string name = {};  // of the copy; empty: made from path and member
  // For copies not made by inflating: the verb for messages, the ending of the copy's file name,
  // and what makes the copy.
  std::string verb = "inflating";
  std::string ending = "inflated";
  std::string means = {};
  // Tells the source's content from any other of the same size and time: a checksum that the source
  // has itself, such as last_bytes(). Empty: a hash of the source, all of it up to
  // kWholeContentBytes.
  std::optional<uint64_t> mark = {};
  uint64_t room_bytes = limits::kCacheRoomBytes;  // to leave free on the cache's disk
};

// kUsage if there is no cache to inflate `name` into.
Status check_cache(const std::string& cache_dir, const std::string& name);

// The inflated form of `what`; `source` is its file. The returned bytes end with the trailer; the
// content is everything before. Errors:
// - kBadData: the source is damaged
// - kInternal: the cache cannot be written, or a copy of many bytes would leave less than
//   room_bytes on its disk
Result<MappedFile> open_inflated(const Compressed& what, const MappedFile& source,
                                 const std::string& cache_dir, const ProgressFn& progress);

// For content of several files.
uint64_t mark_from(const Xxh3& hash);

// The last 8 bytes: of a gzip file its CRC-32 and length.
uint64_t last_bytes(const MappedFile& source);

// Where open_inflated() keeps the copy.
std::string inflated_path(const Compressed& what, const std::string& cache_dir);

// The content of a file that may be a copy: a copy (`is_copy`) loses its trailer.
std::span<const uint8_t> content_of(std::span<const uint8_t> file, bool is_copy);

// The name of the i-th file, at `path`, for messages. For a copy: the name of its source.
std::string shown_name(const std::string& path, const std::map<size_t, std::string>& copied,
                       size_t i);

}  // namespace lockstep::data
