#include "data/source/cache/fetch_queue.h"

#include <system_error>

#include "comm/base/limits.h"
#include "data/source/base/quiet_thread.h"

namespace lockstep::source {

FetchQueue::~FetchQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void FetchQueue::announce(const ObjectInfo& object, uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (ranges_.size() == limits::kAnnouncedRanges) return;
  ranges_.push_back({&object, offset, bytes});
  changed_.notify_one();
  if (!threads_.empty()) return;
  try {
    while (threads_.size() < wanted_) threads_.push_back(quiet_thread([this] { run(); }));
  } catch (const std::system_error&) {
    // Fewer threads do the same work. With none, announced bytes are fetched when they are read.
  }
}

void FetchQueue::run() {
  for (;;) {
    Range range{};
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !ranges_.empty(); });
      if (stop_) return;
      range = ranges_.front();
      ranges_.pop_front();
    }
    cache_.fetch_ahead(*range.object, range.offset, range.bytes);
  }
}

}  // namespace lockstep::source
