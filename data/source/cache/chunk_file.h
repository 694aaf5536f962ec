// A piece of an object in a file of its own, with checksums that tell whether the file is whole.
//
// FILE, numbers little-endian:
//   content  `bytes` of them
//   hashes   XXH3-128, as 32 hex digits, of every 64 KiB of the content (or of the shorter rest)
//   footer   "LKSCHK01", bytes (8), XXH3-128, as 32 hex digits, over hashes, magic, bytes and id
//
// The writer writes the file beside its place and renames it, without fsync: after a power cut the
// hashes show whether it is whole.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::source {

// kMissing: there is no file. kDamaged: the file is no whole chunk of this id.
enum class ChunkRead { kRead, kMissing, kDamaged };

// Reads [offset, offset + bytes) of the content. Checks only the blocks that it reads.
ChunkRead read_chunk(const std::string& path, const std::string& id, uint64_t offset,
                     uint64_t bytes, uint8_t* out);

// False if the file cannot be written; then it leaves nothing. REQUIRES: one writer at a time.
bool write_chunk(const std::string& path, const std::string& id, std::span<const uint8_t> content);

// Size of the file with so much content.
uint64_t chunk_file_bytes(uint64_t content_bytes);

// Ends the name under which a chunk is written before it is renamed.
inline constexpr const char* kPartEnding = ".part";

}  // namespace lockstep::source
