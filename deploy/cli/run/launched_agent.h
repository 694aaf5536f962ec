// `lockstep agent JOB.yaml --run-dir DIR` under a launcher, one process a rank. Rank 0 is a whole
// run (run_in_directory.h) whose agent keeps the workers of this rank. Every other rank waits for
// the run that rank 0 prepares (launch_record.h), and is an agent. No rank ends before the run
// does, and all end with its exit code.
//
// The same command line continues a run: it resumes the run in the directory if the job is the
// same, and refuses another job. A run with nothing left to do says so and ends with 0.
//
// Kubernetes replaces ranks one by one (launch_record.h). A new rank 0 takes the run over. A rank
// that was stopped alone ends with 75, so that another pod replaces it.
//
// Thread-safety: the main thread.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "deploy/agent/launch_env.h"

namespace lockstep {

struct LaunchedAgent {
  std::vector<std::string> positional;  // the job file, overrides
  std::string run_dir;
  std::string node;      // name of the node
  uint32_t workers = 0;  // of each rank; 0: what the launcher says, else one
};

// Returns the exit code; an error if the run could not begin.
Result<int> run_launched(const LaunchedAgent& arguments, const LaunchEnv& env);

}  // namespace lockstep
