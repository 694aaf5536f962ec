// A resolved job as YAML, and the documentation of its keys.
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/wire/job.pb.h"

namespace lockstep {

// parse_job_yaml + resolve_job of this text give `job` again.
std::string job_yaml(const wire::JobSpec& job);

// Every key with its default and meaning, for `lockstep run --help-job`.
std::string job_help();

}  // namespace lockstep
