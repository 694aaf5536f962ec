// From what was said (JobValues) to a complete wire::JobSpec: every value checked, every default
// filled in, every `auto` resolved. Pure; what it must know of the machine comes in a JobContext.
//
// Precedence: command line > environment > file > what the run already has (resume) > default.
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage for a wrong value or, on a resume, another identity; kConfig for one that cannot work on
// this machine. Messages name the key, the value, where it was given and what would be right.
Result<wire::JobSpec> resolve_job(const JobValues& values, const JobContext& context);

}  // namespace lockstep
