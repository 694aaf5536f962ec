// Fetches what will be needed before it is, in the order in which it will be.
//
// The order of samples is known to the end of the run, so whoever reads them announces what comes;
// how far ahead is theirs to bound. At most limits::kAnnouncedRanges wait here; beyond that
// announcements are forgotten, which costs time only.
//
// Thread-safety: all calls from any thread; the destructor ends requests that are under way once
// `stop` of the reader is set.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "data/source/cached_reader.h"

namespace lockstep::source {

class FetchAhead {
 public:
  // `reader` outlives it. Threads are started with the first announcement.
  FetchAhead(CachedReader& reader, uint32_t threads) : reader_(reader), wanted_(threads) {}
  ~FetchAhead();
  FetchAhead(const FetchAhead&) = delete;
  FetchAhead& operator=(const FetchAhead&) = delete;

  // `object` outlives it. REQUIRES: the range lies within it.
  void announce(const ObjectInfo& object, uint64_t offset, uint64_t bytes);

 private:
  struct Range {
    const ObjectInfo* object;
    uint64_t offset;
    uint64_t bytes;
  };
  void run();

  CachedReader& reader_;
  const uint32_t wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Range> ranges_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::source
