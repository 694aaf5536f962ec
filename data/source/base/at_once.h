// Several waits at a time: requests spend their time on a network, not on a processor.
//
// Thread-safety: from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/base/status.h"

namespace lockstep::source {

// Calls part(i) for every i < parts on up to `threads` threads. Ends at the first error.
Status at_once(uint32_t threads, uint64_t parts, const std::function<Status(uint64_t)>& part);

}  // namespace lockstep::source
