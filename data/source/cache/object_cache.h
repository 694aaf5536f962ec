// Reads objects of a source through two caches: memory_tier.h, then disk_cache.h.
//
//   read ──▶ memory ──▶ disk ──▶ source, several requests at a time
//                        ▲          │  a whole chunk, where the disk keeps it
//                        └──────────┘  else only the range that was asked for
//
// INVARIANTS
//  R1 A read gives the bytes that ObjectStore::read() gives, wherever they come from: the name of a
//     chunk holds source, object and version.
//  R2 At most CacheOptions::requests requests run at once. A process never fetches a range twice at
//     the same time. Two processes of a machine never fetch a chunk that the disk keeps at the same
//     time.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "comm/base/status.h"
#include "data/source/base/cache_options.h"
#include "data/source/base/object_store.h"
#include "data/source/cache/disk_cache.h"
#include "data/source/cache/memory_tier.h"

namespace lockstep::source {

// Since the start of the process; cache_bytes is the present value.
struct SourceCounts {
  uint64_t hits = 0;    // pieces of objects that were near when they were needed
  uint64_t misses = 0;  // pieces that were not
  uint64_t fetched_bytes = 0;
  uint64_t fetch_ns = 0;     // total time of requests
  uint64_t cache_bytes = 0;  // on the disk, of all processes
};

class ObjectCache {
 public:
  // All arguments outlive it. Once `stop` is set, reads end with kAborted.
  ObjectCache(ObjectStore& store, DiskCache& disk, const CacheOptions& options,
              const std::atomic<bool>& stop);

  // Reads [offset, offset + bytes) into `out`. REQUIRES: the range lies within the object. kBadData
  // and kNoInput as with_retries(), with names of object and source.
  Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out);

  // The same past the cache, for objects that are kept whole elsewhere.
  Status read_once(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out);

  // Brings the range near, so that read() need not wait. Leaves errors to read().
  void fetch_ahead(const ObjectInfo& object, uint64_t offset, uint64_t bytes);

  SourceCounts counts() const;

 private:
  struct Piece;  // of one chunk
  template <typename Use>
  Status for_pieces(const ObjectInfo& object, uint64_t offset, uint64_t bytes, const Use& use);
  bool is_near(const Piece& piece) const;
  bool read_near(const Piece& piece, uint8_t* out);
  Status bring(const Piece& piece, bool keeps, uint8_t* out);
  Status bring_chunk(const Piece& piece, uint8_t* out);

  ObjectStore& store_;
  DiskCache& disk_;
  const CacheOptions options_;
  const std::atomic<bool>& stop_;
  MemoryTier memory_;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t free_requests_;
  std::unordered_set<std::string> being_brought_;  // ids

  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> misses_{0};
  std::atomic<uint64_t> fetched_bytes_{0};
  std::atomic<uint64_t> fetch_ns_{0};
};

}  // namespace lockstep::source
