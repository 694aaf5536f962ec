// Finds the processes of a run by their command lines: which nodes have workers on this machine (in
// a container, in the container), and which children of this process belong to the run.
//
// Thread-safety: free functions; read /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

struct LocalProcesses {
  // Names of the nodes. Several agents on this machine are several nodes.
  std::set<std::string> nodes;
  uint32_t agents = 0;
};

// `run_dir` is absolute.
LocalProcesses local_processes(const std::string& run_dir);

// Children of this process that are the run's coordinators, agents or workers, as far as they live:
// also workers whose agent is dead, if this process is their subreaper. A shell may have left
// children of its own to a program that it became (`exec > >(tee log); sleep 9 &`), which no
// process of the run may touch.
std::vector<pid_t> children_of_run(const std::string& run_dir);

}  // namespace lockstep
