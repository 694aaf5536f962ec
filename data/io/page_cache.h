// Reads what the kernel has of files in memory, without waiting for a disk.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <optional>

#include "data/io/file_extent.h"

namespace lockstep::data {

// Reads the extent if the page cache has all of it, and the directory entry of its file. Returns
// nothing where it would have to wait, or where the kernel or file system cannot read without
// waiting.
std::optional<Status> read_if_cached(const FileExtent& extent, uint8_t* out);

// Whether the page cache has the first byte of the extent. Looking does not bring it there, as a
// read would. Also true where the kernel does not tell, because the process neither owns the file
// nor may write it. REQUIRES: extent.fd >= 0, extent.bytes > 0.
bool begins_in_cache(const FileExtent& extent);

}  // namespace lockstep::data
