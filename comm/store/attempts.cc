#include "comm/store/attempts.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/base/prng.h"

namespace lockstep::store {
namespace {

constexpr int64_t kLookMs = 20;  // between two looks at `stop`

void pause(int64_t ms, const std::atomic<bool>& stop) {
  for (int64_t done = 0; done < ms && !stop.load(); done += kLookMs)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(kLookMs, ms - done)));
}

// Of `ms`, between a half and all.
int64_t share_of(int64_t ms) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const uint64_t half = static_cast<uint64_t>(ms) / 2;
  return ms - static_cast<int64_t>(mix64(static_cast<uint64_t>(now)) % (half + 1));
}

}  // namespace

Tried with_retries(const RetryOptions& options, const std::atomic<bool>& stop,
                   const std::function<bool(Code)>& may_pass,
                   const std::function<Status()>& try_it) {
  const uint32_t attempts = std::max(options.attempts, 1U);
  int64_t pause_ms = options.pause_ms;
  for (uint32_t attempt = 1;; ++attempt) {
    if (stop.load()) return {{Code::kAborted, "it was cancelled"}, attempt - 1};
    Status status = try_it();
    if (status.is_ok() || status.code() == Code::kAborted || !may_pass(status.code()) ||
        attempt == attempts)
      return {std::move(status), attempt};
    pause(share_of(pause_ms), stop);
    pause_ms = std::min(2 * pause_ms, limits::kSourcePauseMs);
  }
}

}  // namespace lockstep::store
