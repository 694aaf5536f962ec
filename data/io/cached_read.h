// Reading without waiting: what the kernel has in memory.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <optional>

#include "data/io/file_extent.h"

namespace lockstep::data {

// The read's end, if all of it is in the page cache, and its file's directory entry too; else
// nothing, or where the kernel or the file system does not know how not to wait.
std::optional<Status> read_if_cached(const FileExtent& extent, uint8_t* out);

// Whether the first of these bytes is in the page cache, without bringing it there, as every read
// does; true where that cannot be told: of a file that this process neither owns nor may write.
// REQUIRES: extent.fd >= 0, extent.bytes > 0.
bool begins_in_cache(const FileExtent& extent);

}  // namespace lockstep::data
