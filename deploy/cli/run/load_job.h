// Reads, checks and resolves the job of a command line: file, environment and overrides.
//
// Thread-safety: free functions; reads the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

struct JobRequest {
  std::string file;                    // or a script; may be empty only with `stored`
  std::vector<std::string> overrides;  // "a.b=c"
  std::string workers;                 // value of --workers; empty: not given
  uint32_t launched_workers = 0;       // default and maximum of cluster.workers; 0: no launcher
  std::string launcher;                // its name, for messages
  uint32_t mpi_ranks = 0;              // ranks of one MPI world (launch_env.h)
  uint32_t gpu_views = 1;        // processes that each see as many GPUs as this one, but others
  std::optional<uint32_t> gpus;  // GPUs where the job will run; none: count this machine's
  const wire::JobSpec* stored = nullptr;  // the job of the run to resume; null: a new run
};

// Splits the positional arguments: those with a '=' are overrides, the other one is the job file
// or the script. Without it, script.module=proj.train (-m proj.train) names the script: kNoInput if
// there is no such module.
Status split_arguments(const std::vector<std::string>& arguments, JobRequest& request);

// kNoInput if there is no such file. kUsage if the job wants more workers than were launched. Other
// errors as resolve_job().
Result<wire::JobSpec> load_job(const JobRequest& request);

}  // namespace lockstep
