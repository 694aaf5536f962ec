// What a job says about the vocabulary that makes tokens of its text (data.tokenizer): the hash of
// its files, and whether there is text for it.
//
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// Sets data.tokenizer_sha256, or compares with the one that is there. REQUIRES: paths are absolute.
Status resolve_tokenizer(const JobContext& context, wire::JobSpec& job);

// kUsage for what does not go together. REQUIRES: formats are resolved.
Status check_tokenizer(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
