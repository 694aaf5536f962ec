// Reads the job in the worker's run directory, before the worker can connect.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

// Reads DIR/job.pb. If the job leaves the number of slots to the number of workers, fills it in.
// Errors as read_job_spec() (comm/run/directory/run_files.h).
Result<wire::JobSpec> read_job(const std::string& run_dir);

// kUsage, with the keys that differ, if the two jobs are not the same.
Status check_same_job(const wire::JobSpec& ours, const wire::JobSpec& coordinators);

}  // namespace lockstep
