// A resolved job as YAML.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/run/job/job.pb.h"

namespace lockstep {

// parse_job_yaml + resolve_job of this text give `job` again. Keys that a script says itself are
// left out of its job.
std::string job_yaml(const wire::JobSpec& job);

}  // namespace lockstep
