#include "data/source/cache/memory_tier.h"

#include <cstring>
#include <utility>

namespace lockstep::source {

bool MemoryTier::read(const std::string& id, uint64_t offset, uint64_t bytes, uint8_t* out) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  const std::vector<uint8_t>& content = found->second->content;
  if (offset > content.size() || bytes > content.size() - offset) return false;
  pieces_.splice(pieces_.begin(), pieces_, found->second);
  std::memcpy(out, content.data() + offset, bytes);
  return true;
}

bool MemoryTier::has(const std::string& id) const {
  std::lock_guard lock(mutex_);
  return by_id_.count(id) > 0;
}

void MemoryTier::put(const std::string& id, std::vector<uint8_t> content) {
  std::lock_guard lock(mutex_);
  if (content.size() > limit_bytes_ || by_id_.count(id) > 0) return;
  while (bytes_ + content.size() > limit_bytes_) {
    bytes_ -= pieces_.back().content.size();
    by_id_.erase(pieces_.back().id);
    pieces_.pop_back();
  }
  bytes_ += content.size();
  pieces_.push_front({id, std::move(content)});
  by_id_[id] = pieces_.begin();
}

uint64_t MemoryTier::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace lockstep::source
