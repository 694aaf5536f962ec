// The settings of a run as JSON: /api/v1/job.
//
// Thread-safety: a pure function.
#pragma once

#include <string>

#include "comm/run/job/job.pb.h"

namespace lockstep::coordinator {

// {"settings": [{"key": "optimizer.lr", "value": "0.01", "changed": true}, ...]}, in the order of
// the job file. `changed`: the value is not the key's default. REQUIRES: the job is resolved.
std::string job_json(const wire::JobSpec& job);

}  // namespace lockstep::coordinator
