// Resolves and checks what a job says about a model from a file (model.name: exported,
// torchscript or plugin).
//
// The format of the training data decides whether such a model takes images or tokens.
//
// Thread-safety: free functions without state.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// REQUIRES: data.train.format is resolved, unless the model is gpt2.
bool takes_tokens(const wire::JobSpec& job);

// Sets model.sha256 and model.eval_sha256, or compares the files with them if the job has them
// already. Sets the defaults that
// differ for tokens. REQUIRES: paths are absolute and formats resolved.
Status resolve_model_file(const JobValues& values, const JobContext& context, wire::JobSpec& job);

// Sets model.init_sha256, or compares the files with it if the job has it already. A resume that
// names no other place does not look there: only a run at step 0 reads the files, and then workers
// compare them. REQUIRES: paths are absolute.
Status resolve_initial_weights(const JobValues& values, const JobContext& context,
                               wire::JobSpec& job);

// kUsage if keys contradict each other.
Status check_model_file(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
