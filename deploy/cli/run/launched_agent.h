// `lockstep agent JOB.yaml --run-dir DIR` as a launcher starts it, one process a rank: rank 0 is a
// whole run (whole_run.h) whose agent keeps this rank's worker; the other ranks wait for the run
// that rank 0 prepares and are an agent each (launch_record.h says how they find it). No rank ends
// before the run does, and all end with its code.
//
// The same command line again continues: what the directory holds is resumed if the job is the same
// one, refused if it is another, and a run that has nothing left to do is told and ends with 0.
//
// On Kubernetes ranks are made again one by one (launch_record.h): a rank 0 that died takes over,
// a rank that was stopped alone ends with 75, so that another pod comes in its place.
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
  std::string node;      // its name
  uint32_t workers = 0;  // of each rank; 0: as the launcher says, else one
};

// Gives the exit code, or why there is none.
Result<int> run_launched(const LaunchedAgent& arguments, const LaunchEnv& env);

}  // namespace lockstep
