// Reports a script that fails after its loop. The run is complete then, and its coordinator has
// ended. So the worker tells its agent in its last words, and the agent tells `lockstep run` in a
// line of its log.
//
// Thread-safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "deploy/agent/worker_slots.h"

namespace lockstep {

// The line for the agent's log if the worker's script failed so; empty: it did not.
std::string failure_after_loop(const WorkerEnd& worker);

// The first such failure in the lines of the agent's log.
struct AfterLoop {
  int exit_code = 0;  // of the first script that failed so; 0: none did
  std::string what;   // in words
  // True if `lines` have a failure, and no earlier lines had one.
  bool see(const std::vector<std::string>& lines);
};

}  // namespace lockstep
