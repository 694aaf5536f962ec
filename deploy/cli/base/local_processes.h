// Whom of a run this machine holds: by the workers that can be seen here, in a container those of
// the container.
//
// Thread-safety: free functions; read /proc.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace lockstep {

struct LocalProcesses {
  // Of the nodes for which workers run here; several where several agents are on this machine.
  std::set<std::string> nodes;
  uint32_t agents = 0;
};

// Of the run in `run_dir`, which is absolute.
LocalProcesses local_processes(const std::string& run_dir);

}  // namespace lockstep
