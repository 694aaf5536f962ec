// Runs an agent in this process, from a prepared run directory to the end of the run.
//
// Thread-safety: the main thread (parent-death signals).
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "deploy/cli/base/stop_signals.h"

namespace lockstep {

struct NodeAgent {
  std::string run_dir;   // absolute
  std::string node;      // name of the node
  uint32_t workers = 0;  // on this node; 0: as the job says
  uint32_t first_local_rank = 0;
  uint32_t agents_here = 1;     // agents of this run on this host
  uint32_t own_gpus = 0;        // worker_slots.h
  bool has_plain_logs = false;  // no agent of another host works on this run
  std::string name;             // of the log; empty: "agent", with the node unless has_plain_logs
  bool is_quiet = false;        // the log goes to its file only
  // Its starter keeps the coordinator and has asked the cloud, or would lose the coordinator by
  // this agent's end: it starts where the machine is to be taken away, too.
  bool is_supervised = false;
  int64_t stop_delay_ms = 0;  // agent.h
};

struct NodeAgentEnd {
  int exit_code = 0;
  bool heard_goodbye = false;  // the exit code is the run's
  bool was_stopped = false;
};

// Releases `held`, if given, as soon as the agent handles stop signals. kNoInput if no run is
// prepared in run_dir.
Result<NodeAgentEnd> run_node_agent(const NodeAgent& node, StopSignals* held);

}  // namespace lockstep
