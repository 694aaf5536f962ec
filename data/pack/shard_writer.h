// Writes one file of `lockstep data pack`. The file has a temporary name until it is whole and on
// the disk, and is then renamed. So a file with its final name is whole.
//
// Thread-safety: a free function; different files from different threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/arrow/file_layout.h"
#include "data/pack/pack_source.h"

namespace lockstep::data {

// Returns the bytes of the file. Advances `done` with the written part of the shard. The temporary
// name is always the same, so a call overwrites what a killed process left. kInternal if the file
// cannot be written. Passes on errors of reading the source.
Result<uint64_t> write_shard(const PackSource& source, const PackShard& shard, ArrowCodec codec,
                             const std::string& path, std::atomic<uint64_t>& done);

// True if there is a whole file with as many rows as the shard has.
bool has_shard(const PackShard& shard, const std::string& path);

}  // namespace lockstep::data
