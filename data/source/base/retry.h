// Asks again when that may help, with pauses that grow.
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

// Calls try_it() until it is ok, gives an error that will not change (object_store.h), `stop` is
// set, or attempts run out. The error is for users: what happened, how often, and what to do.
// kBadData when `what` is another one now, kAborted once `stop` is set, else kNoInput.
Status with_retries(const RetryOptions& options, const std::atomic<bool>& stop,
                    const std::string& what, const std::function<Status()>& try_it);

}  // namespace lockstep::source
