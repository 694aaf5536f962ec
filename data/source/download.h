// A whole object as a file.
//
// Thread-safety: free functions; of one object one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/status.h"
#include "data/source/object_store.h"

namespace lockstep::source {

// Gives [offset, offset + bytes) of the object.
using ReadPieceFn = std::function<Status(uint64_t offset, uint64_t bytes, uint8_t* out)>;

// Into a new file at `path`, several pieces at a time. What was fetched before it fails, or the
// process is killed, stays beside it as `path`.pieces/, each with its checksum (chunk_file.h), and
// the next attempt goes on from there. `has_read` is told bytes as they come, from any thread.
Status download(const ObjectInfo& object, const ReadPieceFn& read, uint32_t requests,
                const std::string& path, const std::function<void(uint64_t bytes)>& has_read);

}  // namespace lockstep::source
