#include "data/source/base/retry.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/base/limits.h"

namespace lockstep::source {
namespace {

constexpr int64_t kLookMs = 20;  // between two looks at `stop`

bool may_change(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kBadData;
}

void pause(int64_t ms, const std::atomic<bool>& stop) {
  for (int64_t done = 0; done < ms && !stop.load(); done += kLookMs)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(kLookMs, ms - done)));
}

Status for_users(const std::string& what, uint32_t attempts, const Status& last) {
  const std::string tried = attempts > 1 ? " (" + std::to_string(attempts) + " attempts)" : "";
  const std::string text = "cannot read " + what + tried + ": " + last.message();
  switch (last.code()) {
    case Code::kBadData:
      return {Code::kBadData, text +
                                  ". Put the old file back and resume the run, or begin a new "
                                  "run in another run directory"};
    case Code::kUnavailable:
    case Code::kTimeout:
      return {Code::kNoInput, text + ". Resume the run when the source answers again"};
    case Code::kRefused:
      return {Code::kNoInput, text};
    default:
      return {last.code(), text};
  }
}

}  // namespace

Status with_retries(const RetryOptions& options, const std::atomic<bool>& stop,
                    const std::string& what, const std::function<Status()>& try_it) {
  const uint32_t attempts = std::max(options.attempts, 1U);
  int64_t pause_ms = options.pause_ms;
  for (uint32_t attempt = 1;; ++attempt) {
    if (stop.load()) return {Code::kAborted, "reading was cancelled"};
    Status status = try_it();
    if (status.is_ok() || status.code() == Code::kAborted) return status;
    if (!may_change(status.code()) || attempt == attempts) return for_users(what, attempt, status);
    pause(pause_ms, stop);
    pause_ms = std::min(2 * pause_ms, limits::kSourcePauseMs);
  }
}

}  // namespace lockstep::source
