// Resolves data.holdout, with which the evaluation data are a part of the training data.
//
// Thread-safety: a free function without state.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// With a holdout, data.eval becomes data.train. kUsage if the job gives another data.eval.
// REQUIRES: paths are absolute.
Status resolve_split(const JobValues& values, wire::JobSpec& job);

}  // namespace lockstep
