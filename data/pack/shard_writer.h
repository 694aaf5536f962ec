// One file that `lockstep data pack` writes: under a temporary name until it is whole and on the
// disk, then renamed, so that whatever has its name is whole.
//
// Thread-safety: a free function; different files from different threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "data/arrow/layout.h"
#include "data/pack/pack_source.h"

namespace lockstep::data {

// Gives the bytes of the file; `done` advances by what of the shard is written. The temporary name
// is always the same, so what a killed process left there is written over. kInternal when it cannot
// be written, and what reading the source says.
Result<uint64_t> write_shard(const PackSource& source, const PackShard& shard, ArrowCodec codec,
                             const std::string& path, std::atomic<uint64_t>& done);

// Whether there is a whole file with as many rows as the shard has.
bool has_shard(const PackShard& shard, const std::string& path);

}  // namespace lockstep::data
