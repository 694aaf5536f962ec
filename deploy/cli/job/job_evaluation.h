// Checks the keys about evaluations, in a job that may have none.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage if a key asks for evaluations, and the job has no data for them.
Status check_evaluation(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
