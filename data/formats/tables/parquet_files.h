// Parquet files: columns compressed in pages, so no sample lies anywhere by itself. Lockstep does
// not read them in place; `lockstep data pack` makes Arrow IPC files of them.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/base/split.h"
#include "data/formats/shards/shards.h"

namespace lockstep::data {

// True by the name, *.parquet, or by the first bytes.
bool is_parquet_file(const std::string& path);

// True by the name alone.
bool is_parquet_name(const std::string& path);

// The files of this split (shards.h).
Result<Shards> find_parquet_shards(const std::string& path, Split split);

// True for a Parquet file, or a directory with Parquet files, whatever else the directory has.
bool is_parquet(const std::string& path);

// kUsage; the message says how to turn the data into a format that Lockstep can read in place.
Status pack_it_first(const std::string& path);

}  // namespace lockstep::data
