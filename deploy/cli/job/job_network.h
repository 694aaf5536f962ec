// What a job says about addresses: whether it can be understood, and is as closed as it has to be.
//
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage for what is no address or network; kConfig for what would be open to others.
Status check_network(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
