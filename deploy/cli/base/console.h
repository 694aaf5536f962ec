// Reports an error: one line on stderr, and the exit code of its status.
//
// Thread-safety: free functions.
#pragma once

#include "comm/base/status.h"

namespace lockstep {

// Prints "lockstep: message" to stderr unless `status` is ok. Returns the exit code.
int report(const Status& status);

}  // namespace lockstep
