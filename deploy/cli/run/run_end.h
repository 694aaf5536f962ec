// What is said at the end of a run, and what becomes of a directory in which nothing has happened.
// Thread-safety: free functions.
#pragma once

#include <string>

#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/run/supervisor.h"

namespace lockstep {

// Gives the exit code. `again`: the command that continues the run.
int tell_end(const RunEnd& end, RunDir& dir, const std::string& again);

// Of a run that has nothing left to do: what it came to, untouched.
int tell_done_already(const RunDir& dir);

}  // namespace lockstep
