// Reads again when that may help (comm/store/attempts.h), and says for users what happened.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/store/attempts.h"

namespace lockstep::source {

using store::RetryOptions;

// Calls try_it() until it is ok, gives an error that will not change (object_store.h), `stop` is
// set, or attempts run out. The error is for users: what happened, how often, and what to do.
// kBadData when `what` is another one now, kAborted once `stop` is set, else kNoInput.
Status with_retries(const RetryOptions& options, const std::atomic<bool>& stop,
                    const std::string& what, const std::function<Status()>& try_it);

}  // namespace lockstep::source
