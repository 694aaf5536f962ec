// Tells the end of a run, and removes a directory in which nothing has happened.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/run/job/job.pb.h"
#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/run/supervisor.h"

namespace lockstep {

// Returns the exit code. `again`: the command that continues the run.
int tell_end(const RunEnd& end, RunDir& dir, const std::string& again);

// Tells the result of a run that has nothing left to do, and changes nothing.
int tell_done_already(const RunDir& dir, const wire::JobSpec& job);

}  // namespace lockstep
