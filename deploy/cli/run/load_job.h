// The job of a command line: file, environment and overrides read, checked and resolved.
// Thread-safety: free functions; reads the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

struct JobRequest {
  std::string file;                    // empty: only with `stored`
  std::vector<std::string> overrides;  // "a.b=c"
  std::string workers;                 // of --workers, as typed; empty: not given
  uint32_t launched_workers = 0;       // that a launcher starts: as many unless the job says
  std::string launcher;                // otherwise, and never more; 0: no launcher
  uint32_t mpi_ranks = 0;              // that can be one MPI world (launch_env.h)
  uint32_t gpu_views = 1;              // processes that see as many GPUs as this one, each others
  std::optional<uint32_t> gpus;        // where the job is to run; none: those that are seen here
  const wire::JobSpec* stored = nullptr;  // of the run that is resumed
};

// Splits the positional arguments: what has a '=' is an override, the other one is the job file.
Status split_arguments(const std::vector<std::string>& arguments, JobRequest& request);

// kNoInput when the file is not there, kUsage when it asks for more workers than are launched, else
// as resolve_job().
Result<wire::JobSpec> load_job(const JobRequest& request);

}  // namespace lockstep
