// Writes what coordinator, agents and workers read in the run directory.
//
// Thread-safety: free functions, called on the main thread.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "deploy/cli/base/stop_signals.h"
#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/run/prepare_data.h"

namespace lockstep {

// Prepares the data of the job. On a resume compares them with the data that the run began with.
// kCheckpointed if one of `signals` comes meanwhile. Other errors, and `progress`, as
// prepare_data().
Result<PreparedData> prepare_run(const RunDir& dir, const wire::JobSpec& job, bool resume,
                                 const StopSignals& signals,
                                 const std::function<void(const std::string&)>& progress);

// The text of job.yaml: every key, and in a comment the legend of the data.
std::string job_text(const wire::JobSpec& job, const wire::DataFacts& facts);

// Removes the files that lead to the last coordinator, so that no process takes it for the next
// one.
void remove_endpoints(const RunDir& dir);

// Writes all files, before any reader starts. Removes files of an earlier start that readers could
// take for this one's.
Status write_run_files(const RunDir& dir, const wire::JobSpec& job, const wire::DataFacts& facts);

}  // namespace lockstep
