// Asking again, with pauses that grow, when asking again may help.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/status.h"

namespace lockstep::source {

struct RetryOptions {
  uint32_t attempts = 5;
  int64_t pause_ms = 100;  // before the second attempt; doubles up to limits::kSourcePauseMs
};

// try_it() until it is ok, an error that will not change (object_store.h), `stop`, or the last
// attempt. Then, for users: kBadData when `what` is another one now, else kNoInput; what happened,
// how often, and what to do. kAborted once `stop` is set.
Status with_retries(const RetryOptions& options, const std::atomic<bool>& stop,
                    const std::string& what, const std::function<Status()>& try_it);

}  // namespace lockstep::source
