// Reports an error, or a lost output: one line on stderr, and the exit code.
//
// Thread-safety: free functions.
#pragma once

#include "comm/base/status.h"

namespace lockstep {

// Prints "lockstep: message" to stderr unless `status` is ok. Returns the exit code.
int report(const Status& status);

// Returns the exit code of a command that prints its result to stdout: `code`, or the code of a
// lost output (comm/environment/standard_streams.h), after its line on stderr.
int finish_output(int code);

}  // namespace lockstep
