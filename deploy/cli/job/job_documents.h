// Checks what a job says about documents of tokens (data.documents, data.document_end).
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage if keys contradict each other; the message names them. REQUIRES: formats are resolved.
Status check_documents(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
