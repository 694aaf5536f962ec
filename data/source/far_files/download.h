// Fetches a whole object into a file.
//
// Thread-safety: free functions; of one object one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/status.h"
#include "data/source/base/object_store.h"

namespace lockstep::source {

// Gives [offset, offset + bytes) of the object.
using ReadPieceFn = std::function<Status(uint64_t offset, uint64_t bytes, uint8_t* out)>;

// Fetches several pieces at a time into a new file at `path`. Pieces have checksums (chunk_file.h)
// and stay in `path`.pieces/ if the download fails or the process is killed; the next attempt goes
// on from them. The disk holds no more than the object and one piece. `has_read` hears of bytes as
// they come, on any thread.
Status download(const ObjectInfo& object, const ReadPieceFn& read, uint32_t requests,
                const std::string& path, const std::function<void(uint64_t bytes)>& has_read);

}  // namespace lockstep::source
