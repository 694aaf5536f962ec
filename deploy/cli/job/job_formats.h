// Resolves the formats `auto` of a job's data sets by looking at their files.
//
// Thread-safety: a free function without state.
#pragma once

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_context.h"

namespace lockstep {

// Errors of JobContext::local_path and detect_format. REQUIRES: paths are absolute.
Status resolve_formats(const JobContext& context, wire::JobSpec& job);

}  // namespace lockstep
