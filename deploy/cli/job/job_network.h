// Checks the addresses of a job: that they can be read, and that they open nothing to strangers.
//
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage for text that is no address or network; kConfig for one that would be open to strangers.
Status check_network(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
