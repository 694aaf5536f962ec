#include "data/source/base/at_once.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "data/source/base/quiet_thread.h"

namespace lockstep::source {

Status at_once(uint32_t threads, uint64_t parts, const std::function<Status(uint64_t)>& part) {
  std::atomic<uint64_t> next{0};
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  Status failure;
  const auto work = [&] {
    for (uint64_t i = next++; i < parts && !has_failed.load(); i = next++) {
      Status status = part(i);
      if (status.is_ok()) continue;
      std::lock_guard lock(mutex);
      if (!has_failed.exchange(true)) failure = std::move(status);
    }
  };
  std::vector<std::thread> others;
  const uint64_t wanted = std::min<uint64_t>(std::max(threads, 1U), parts);
  try {
    while (others.size() + 1 < wanted) others.push_back(quiet_thread(work));
  } catch (const std::system_error&) {
    // Fewer threads do the same work.
  }
  work();
  for (std::thread& thread : others) thread.join();
  return failure;
}

}  // namespace lockstep::source
