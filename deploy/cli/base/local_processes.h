// Which nodes of a run have workers on this machine. In a container only the workers of the
// container count.
//
// Thread-safety: free functions; read /proc.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace lockstep {

struct LocalProcesses {
  // Names of the nodes. Several agents on this machine are several nodes.
  std::set<std::string> nodes;
  uint32_t agents = 0;
};

// `run_dir` is absolute.
LocalProcesses local_processes(const std::string& run_dir);

}  // namespace lockstep
