// Resolves and checks the vocabulary that turns text into tokens (data.tokenizer).
//
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// Sets data.tokenizer_sha256, or compares the files with it if the job has it already. REQUIRES:
// paths are absolute.
Status resolve_tokenizer(const JobContext& context, wire::JobSpec& job);

// kUsage if keys contradict each other. REQUIRES: formats are resolved.
Status check_tokenizer(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
