// Checks train.precision, and what fp8 does not go with.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage, with the keys and what to do. REQUIRES: the model's size is resolved.
Status check_precision(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
