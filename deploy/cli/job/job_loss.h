// What train.loss goes with, and what it does not.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage for a key that asks for something of labels that are classes, beside a loss for which they
// are numbers.
Status check_loss(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
