// Makes a complete wire::JobSpec of the values that the user gave (JobValues): checks every value,
// fills in every default and resolves every `auto`. Pure: a JobContext tells about the machine.
//
// Precedence: command line > environment > file > what the run already has (resume) > default.
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage for a wrong value and, on a resume, for another identity. kConfig for a value that cannot
// work on this machine. Messages name the key, the value, where it was given, and the remedy.
Result<wire::JobSpec> resolve_job(const JobValues& values, const JobContext& context);

}  // namespace lockstep
