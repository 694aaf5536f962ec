// Whether the keys of fields (data.inputs, data.targets, data.weight) go with the others.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage if two keys name the same thing, a name stands twice, or a transform mixes labels.
Status check_fields(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
