// What a job says about the documents of its tokens (data.documents, data.document_end).
//
// Thread-safety: a pure function.
#pragma once

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// kUsage naming the keys that do not go together. REQUIRES: formats are resolved.
Status check_documents(const JobValues& values, const wire::JobSpec& job);

}  // namespace lockstep
