// An agent in this process: from a prepared run directory to the end of the run here.
// Thread-safety: the main thread (parent-death signals).
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "deploy/cli/base/stop_signals.h"

namespace lockstep {

struct NodeAgent {
  std::string run_dir;   // absolute
  std::string node;      // its name
  uint32_t workers = 0;  // here; 0: as the job says
  uint32_t first_local_rank = 0;
  uint32_t agents_here = 1;     // of this run, on this host
  uint32_t own_gpus = 0;        // worker_slots.h
  bool has_plain_logs = false;  // no agent of another host works on this run
  std::string name;             // of its log; empty: "agent", with the node unless plain
  bool is_quiet = false;        // its log goes to the file only
  int64_t stop_delay_ms = 0;    // agent.h
};

struct NodeAgentEnd {
  int exit_code = 0;
  bool heard_goodbye = false;  // the code is the run's
  bool was_stopped = false;
};

// From when on a stop signal is handled `held` is released, if there is one; when the agent has
// ended it holds again. kNoInput when no run is prepared there.
Result<NodeAgentEnd> run_node_agent(const NodeAgent& node, StopSignals* held);

}  // namespace lockstep
