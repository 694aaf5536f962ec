// Parquet files: columns that are compressed in pages, so that no sample lies anywhere by itself.
// They are not read in place; `lockstep data pack` makes Arrow IPC files of them.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/base/split.h"
#include "data/formats/shards/shards.h"

namespace lockstep::data {

// By its name, *.parquet, or its first bytes.
bool is_parquet_file(const std::string& path);

// The files of this split (shards.h).
Result<Shards> find_parquet_shards(const std::string& path, Split split);

// Whether this is a Parquet file, or a directory with such, whatever else is there.
bool is_parquet(const std::string& path);

// kUsage, saying how it becomes something that can be read in place.
Status pack_it_first(const std::string& path);

}  // namespace lockstep::data
