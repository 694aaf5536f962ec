// Pieces of objects in memory, in front of the disk cache: fetched ahead and kept nowhere else. The
// piece used longest ago makes room.
//
// INVARIANT: at most `limit_bytes` of content.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::source {

class MemoryTier {
 public:
  explicit MemoryTier(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Reads [offset, offset + bytes) of the piece; false if the piece is not there or is shorter.
  bool read(const std::string& id, uint64_t offset, uint64_t bytes, uint8_t* out);
  bool has(const std::string& id) const;
  // Does nothing with a piece that is too large.
  void put(const std::string& id, std::vector<uint8_t> content);
  uint64_t bytes() const;

 private:
  struct Piece {
    std::string id;
    std::vector<uint8_t> content;
  };

  const uint64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::list<Piece> pieces_;  // most recently used first
  std::unordered_map<std::string, std::list<Piece>::iterator> by_id_;
  uint64_t bytes_ = 0;
};

}  // namespace lockstep::source
