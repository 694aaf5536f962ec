// Fetches announced ranges of objects into the cache, in the order of their announcement.
// data/prefetch/far_prefetcher.h announces the ranges, and bounds how far ahead it does so.
//
// At most limits::kAnnouncedRanges ranges wait. Further ones are forgotten, which costs time only.
//
// Thread-safety: all calls from any thread. The destructor ends requests that are under way once
// `stop` of the cache is set.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "data/source/cache/object_cache.h"

namespace lockstep::source {

class FetchQueue {
 public:
  // `cache` outlives it. The first announcement starts the threads.
  FetchQueue(ObjectCache& cache, uint32_t threads) : cache_(cache), wanted_(threads) {}
  ~FetchQueue();
  FetchQueue(const FetchQueue&) = delete;
  FetchQueue& operator=(const FetchQueue&) = delete;

  // `object` outlives the queue. REQUIRES: the range lies within the object.
  void announce(const ObjectInfo& object, uint64_t offset, uint64_t bytes);

 private:
  struct Range {
    const ObjectInfo* object;
    uint64_t offset;
    uint64_t bytes;
  };
  void run();

  ObjectCache& cache_;
  const uint32_t wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Range> ranges_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::source
