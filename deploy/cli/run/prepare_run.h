// From a job to everything that coordinator, agents and workers read in the run directory.
// Thread-safety: free functions, called on the main thread.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/base/stop_signals.h"
#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/run/prepare_data.h"

namespace lockstep {

// The data of the job, on a resume compared with those that the run was started with. kCheckpointed
// when one of `signals` comes meanwhile; else as prepare_data(). `progress` gets sentences while
// something takes long.
Result<PreparedData> prepare_run(const RunDir& dir, const wire::JobSpec& job, bool resume,
                                 const StopSignals& signals,
                                 const std::function<void(const std::string&)>& progress);

// What led to the coordinator before: nobody shall take the next one for it.
void remove_endpoints(const RunDir& dir);

// Everything that the others read, before any of them is started. What an earlier start left and
// could be taken for this one's is removed.
Status write_run_files(const RunDir& dir, const wire::JobSpec& job, const wire::DataFacts& facts);

}  // namespace lockstep
