// Tries again when that may help, with pauses that grow.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "comm/base/limits.h"
#include "comm/base/status.h"

namespace lockstep::store {

struct RetryOptions {
  uint32_t attempts = 5;
  // The most before the second attempt. It doubles up to limits::kSourcePauseMs.
  int64_t pause_ms = 100;
};

struct Tried {
  Status status;  // of the last attempt; kAborted once `stop` is set
  uint32_t attempts = 0;
};

// Calls try_it() until it is ok, may_pass() is false for its error, `stop` is set, or attempts run
// out. A pause lasts between half of its length and all of it, so that many that failed at once do
// not ask again at once.
Tried with_retries(const RetryOptions& options, const std::atomic<bool>& stop,
                   const std::function<bool(Code)>& may_pass,
                   const std::function<Status()>& try_it);

}  // namespace lockstep::store
