// The job of a script (model.name script): the model, its data, optimizer and loss are the
// script's, and the job says the rest.
//
// Thread-safety: pure functions; JobContext looks at the file.
#pragma once

#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "deploy/cli/job/job_context.h"
#include "deploy/cli/job/job_values.h"

namespace lockstep {

// Parses a job file, or the block of a script (script_block.h), whose script.path is then
// `script_path`. `name` is for messages.
Result<JobValues> parse_job_file(std::string_view text, const std::string& name,
                                 const std::string& script_path);

// True if the values make a script's job. The values of the run to resume (`stored`, may be null)
// count where they give none.
bool is_script_job(const JobValues& values, const wire::JobSpec* stored);

// kUsage if the job has both a model and a script, and for a key or a value that has no place in a
// script's job. The message says where the script says it. `stored` as above.
Status check_script_keys(const JobValues& values, const wire::JobSpec* stored);

// kUsage for keys of `script` that contradict others, kNoInput if there is no such script.
// REQUIRES: paths are absolute.
Status check_script(const JobValues& values, const JobContext& context, const wire::JobSpec& job);

}  // namespace lockstep
