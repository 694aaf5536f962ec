// Checks that train.loss goes with the model and the other keys.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage if a key needs labels that are classes, and train.loss takes labels that are numbers.
Status check_loss(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
