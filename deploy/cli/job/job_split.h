// Where the evaluation data are a part of the training data (data.holdout), and that nothing else
// was asked for beside it.
//
// Thread-safety: a free function without state.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// data.eval becomes data.train where there is a holdout; kUsage where it was given as something
// else. REQUIRES: paths are absolute.
Status resolve_split(const JobValues& values, wire::JobSpec& job);

}  // namespace lockstep
