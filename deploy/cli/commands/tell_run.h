// Gives a live run a command, and says what comes of it.
//
// Thread-safety: the main thread; blocks for at most limits::kCommandMs.
#pragma once

#include <string>

#include "comm/wire/control.pb.h"

namespace lockstep {

// Prints the answer, or why there is none. Returns the exit code of the process.
int tell_run(const std::string& run_dir, const wire::Command& command);

}  // namespace lockstep
