// Reads objects of a source through memory and disk.
//
//   read ──▶ memory ──▶ disk ──▶ source, several requests at a time
//                        ▲          │  a whole chunk, where the disk keeps it
//                        └──────────┘  else just what was asked for
//
// INVARIANTS
//  R1 What is read is what ObjectStore::read() gives, wherever it comes from: names of chunks hold
//     source, object and version.
//  R2 At most CacheOptions::requests are at the source at once. Nothing is fetched twice at a time,
//     in this process; a chunk that is kept not by two processes of a machine either.
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
#include "data/source/cache_options.h"
#include "data/source/disk_cache.h"
#include "data/source/memory_tier.h"
#include "data/source/object_store.h"

namespace lockstep::source {

// Since the start of the process, but cache_bytes, which is now.
struct SourceCounts {
  uint64_t hits = 0;    // pieces of objects that were near when they were needed
  uint64_t misses = 0;  // that were not
  uint64_t fetched_bytes = 0;
  uint64_t fetch_ns = 0;     // that requests took, together
  uint64_t cache_bytes = 0;  // on the disk, of all processes
};

class CachedReader {
 public:
  // All outlive it; once `stop` is set, reads end with kAborted.
  CachedReader(ObjectStore& store, DiskCache& disk, const CacheOptions& options,
               const std::atomic<bool>& stop);

  // [offset, offset + bytes) into `out`. REQUIRES: it lies within the object. kBadData and kNoInput
  // as with_retries() says them, naming object and source.
  Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out);

  // The same past the cache: what is kept whole elsewhere need not be here, too.
  Status read_once(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out);

  // Brings it near, so that read() need not wait. What fails will fail again when it is read.
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
