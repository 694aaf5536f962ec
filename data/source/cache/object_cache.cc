#include "data/source/cache/object_cache.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "comm/base/hash.h"
#include "data/source/base/retry.h"

namespace lockstep::source {

struct ObjectCache::Piece {
  const ObjectInfo& object;
  uint64_t chunk_begin;  // within the object
  uint64_t chunk_bytes;
  uint64_t offset;  // within the chunk
  uint64_t bytes;
  std::string chunk_id;

  // Names just these bytes.
  std::string id() const {
    return chunk_id + ":" + std::to_string(offset) + "+" + std::to_string(bytes);
  }
};

ObjectCache::ObjectCache(ObjectStore& store, DiskCache& disk, const CacheOptions& options,
                         const std::atomic<bool>& stop)
    : store_(store),
      disk_(disk),
      options_(options),
      stop_(stop),
      memory_(options.memory_bytes),
      free_requests_(std::max(options.requests, 1U)) {}

template <typename Use>
Status ObjectCache::for_pieces(const ObjectInfo& object, uint64_t offset, uint64_t bytes,
                               const Use& use) {
  const uint64_t end = offset + bytes;
  while (offset < end) {
    const uint64_t begin = offset / options_.chunk_bytes * options_.chunk_bytes;
    const uint64_t chunk = std::min(options_.chunk_bytes, object.bytes - begin);
    const uint64_t part = std::min(end, begin + chunk) - offset;
    const std::string what = store_.place() + "\n" + object.name + "\n" + object.version + "\n" +
                             std::to_string(object.bytes) + "\n" + std::to_string(begin) + "+" +
                             std::to_string(chunk);
    LOCKSTEP_RETURN_IF_ERROR(
        use(Piece{object, begin, chunk, offset - begin, part, xxh3_hex(what.data(), what.size())}));
    offset += part;
  }
  return Status::ok();
}

Status ObjectCache::read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out) {
  return for_pieces(object, offset, bytes, [&](const Piece& piece) -> Status {
    uint8_t* to = out + (piece.chunk_begin + piece.offset - offset);
    if (read_near(piece, to)) {
      ++hits_;
      return Status::ok();
    }
    ++misses_;
    return bring(piece, /*keeps=*/false, to);
  });
}

void ObjectCache::fetch_ahead(const ObjectInfo& object, uint64_t offset, uint64_t bytes) {
  std::vector<uint8_t> room;
  (void)for_pieces(object, offset, bytes, [&](const Piece& piece) -> Status {
    if (is_near(piece)) return Status::ok();
    room.resize(piece.bytes);
    return bring(piece, /*keeps=*/true, room.data());
  });
}

bool ObjectCache::is_near(const Piece& piece) const {
  return memory_.has(piece.id()) || memory_.has(piece.chunk_id) || disk_.has(piece.chunk_id);
}

bool ObjectCache::read_near(const Piece& piece, uint8_t* out) {
  return memory_.read(piece.id(), 0, piece.bytes, out) ||
         memory_.read(piece.chunk_id, piece.offset, piece.bytes, out) ||
         disk_.read(piece.chunk_id, piece.offset, piece.bytes, out);
}

// Reads from the source. If another thread of this process is fetching the piece, waits and reads
// it from where that thread puts it. `keeps`: in memory, if the disk does not.
Status ObjectCache::bring(const Piece& piece, bool keeps, uint8_t* out) {
  const bool is_for_disk = disk_.has_room(piece.chunk_bytes);
  const std::string id = is_for_disk ? piece.chunk_id : piece.id();
  {
    std::unique_lock lock(mutex_);
    const bool was_busy = being_brought_.count(id) > 0;
    changed_.wait(lock, [&] { return being_brought_.count(id) == 0; });
    being_brought_.insert(id);
    lock.unlock();
    if (was_busy && read_near(piece, out)) {
      lock.lock();
      being_brought_.erase(id);
      changed_.notify_all();
      return Status::ok();
    }
  }
  Status status;
  if (is_for_disk) {
    status = bring_chunk(piece, out);
  } else {
    status = read_once(piece.object, piece.chunk_begin + piece.offset, piece.bytes, out);
    if (status.is_ok() && keeps) memory_.put(id, {out, out + piece.bytes});
  }
  std::lock_guard lock(mutex_);
  being_brought_.erase(id);
  changed_.notify_all();
  return status;
}

Status ObjectCache::bring_chunk(const Piece& piece, uint8_t* out) {
  const auto alone = disk_.lock(piece.chunk_id);
  // Another process may have been at it.
  if (disk_.read(piece.chunk_id, piece.offset, piece.bytes, out)) return Status::ok();
  std::vector<uint8_t> chunk(piece.chunk_bytes);
  LOCKSTEP_RETURN_IF_ERROR(read_once(piece.object, piece.chunk_begin, chunk.size(), chunk.data()));
  std::memcpy(out, chunk.data() + piece.offset, piece.bytes);
  if (!disk_.store(piece.chunk_id, chunk)) memory_.put(piece.chunk_id, std::move(chunk));
  return Status::ok();
}

Status ObjectCache::read_once(const ObjectInfo& object, uint64_t offset, uint64_t bytes,
                              uint8_t* out) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_requests_ > 0; });
    --free_requests_;
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string what = "bytes " + std::to_string(offset) + " to " +
                           std::to_string(offset + bytes - 1) + " of " + object.name + " of " +
                           store_.place();
  Status status = with_retries({.attempts = options_.attempts}, stop_, what,
                               [&] { return store_.read(object, offset, bytes, out); });
  fetch_ns_ += static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  if (status.is_ok()) fetched_bytes_ += bytes;
  std::lock_guard lock(mutex_);
  ++free_requests_;
  changed_.notify_all();
  return status;
}

SourceCounts ObjectCache::counts() const {
  return {hits_, misses_, fetched_bytes_, fetch_ns_, disk_.bytes()};
}

}  // namespace lockstep::source
