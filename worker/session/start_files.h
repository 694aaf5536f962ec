// The job that a worker finds in its run directory before it can speak to anyone.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

// DIR/job.pb, with the number of slots filled in where the job left it to the number of workers.
// Errors as read_job_spec() (comm/rundir/run_files.h).
Result<wire::JobSpec> read_job(const std::string& run_dir);

// kUsage, with the keys that differ, unless both are the same job.
Status check_same_job(const wire::JobSpec& ours, const wire::JobSpec& coordinators);

}  // namespace lockstep
