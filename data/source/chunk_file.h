// A piece of an object in a file of its own, which says itself whether it is whole.
//
// FILE, numbers little-endian:
//   content  `bytes` of them
//   hashes   XXH3-128 as 32 hex digits of every 64 KiB of the content, the last may be shorter
//   footer   "LKSCHK01", bytes (8), XXH3-128 as 32 hex digits of: the hashes, the two before, the
//   id
//
// It is written beside its place and renamed, without fsync: after a power cut the hashes tell.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::source {

// kMissing: it is not there; kDamaged: it is no chunk of this id any more.
enum class ChunkRead { kRead, kMissing, kDamaged };

// [offset, offset + bytes) of the content; only what was read is checked.
ChunkRead read_chunk(const std::string& path, const std::string& id, uint64_t offset,
                     uint64_t bytes, uint8_t* out);

// False where it cannot be written, with nothing left behind. REQUIRES: one writer at a time.
bool write_chunk(const std::string& path, const std::string& id, std::span<const uint8_t> content);

// Bytes of the file with this content.
uint64_t chunk_file_bytes(uint64_t content_bytes);

// What a chunk is written to before it is renamed ends with this.
inline constexpr const char* kPartEnding = ".part";

}  // namespace lockstep::source
