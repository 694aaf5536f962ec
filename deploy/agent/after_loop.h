// A script that fails after its loop. The run is complete then, and its coordinator has ended, so
// the worker tells its agent by its last words, and the agent `lockstep run` by a line of its log.
//
// Thread-safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "deploy/agent/worker_slots.h"

namespace lockstep {

// What the agent's log says of a worker whose script failed so; empty: it did not.
std::string failure_after_loop(const WorkerEnd& worker);

// What the log's lines say.
struct AfterLoop {
  int exit_code = 0;  // of the first script that failed so; 0: none did
  std::string what;   // in words
  // True if it is there now and was not before.
  bool see(const std::vector<std::string>& lines);
};

}  // namespace lockstep
