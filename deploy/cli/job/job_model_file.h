// What a job says about a model from a file (model.name: torchscript or plugin): the file's hash,
// and whether what is said of it fits together.
//
// Such a model takes images or tokens; which, the format of the training data decides.
//
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// REQUIRES: data.train.format is resolved, unless the model is gpt2.
bool takes_tokens(const wire::JobSpec& job);

// Sets model.sha256, or compares with the one that is there; sets the defaults that are others for
// tokens. REQUIRES: paths are absolute and formats resolved.
Status resolve_model_file(const JobValues& values, const JobContext& context, wire::JobSpec& job);

// kUsage for what does not go together.
Status check_model_file(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
