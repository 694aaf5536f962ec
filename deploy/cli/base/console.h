// How `lockstep` speaks when something is wrong: one line, and the exit code that belongs to it.
// Thread-safety: free functions.
#pragma once

#include "comm/base/status.h"

namespace lockstep {

// Prints "lockstep: message" to stderr unless `status` is ok; gives the exit code.
int report(const Status& status);

}  // namespace lockstep
