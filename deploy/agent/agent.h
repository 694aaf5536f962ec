// One node's agent: starts the workers, outlives them, reaps them, and tells the coordinator what
// it saw. It is what a launcher starts, so it must not end before its workers have.
//
//   start N workers ──▶ watch ──▶ all have ended ──▶ Goodbye heard, or waited long enough ──▶ end
//                         │ stop signal: SIGTERM to every worker; after the grace time SIGKILL
//                         │ Goodbye: the run is over; who has not gone after the grace time is
//                         killed
//
// Invariants
//   1. run() returns only when every worker is reaped, whatever happens.
//   2. Every death is reported at most once per connection to the coordinator, and again after a
//      reconnection until the coordinator has said Goodbye: a restarted one must not miss it.
//
// Thread-safety: one thread creates it and calls run(); the kernel's parent-death signal makes that
// the thread that must live.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/log.h"
#include "comm/base/status.h"

namespace lockstep {

struct AgentOptions {
  std::string run_dir;
  std::string node;
  uint32_t workers = 1;
  int64_t grace_ms = 60'000;         // from a stop signal to SIGKILL
  int64_t leave_ms = 10'000;         // from Goodbye to SIGKILL, and from the last worker to the end
  uint32_t restarts_per_worker = 0;  // a dead worker ends the run for now
  std::string worker_program;        // path of lockstep-worker
  std::string token;
};

class Agent {
 public:
  Agent(AgentOptions options, Logger& logger);
  ~Agent();

  // Until all workers have ended. The exit code for the process: that of the coordinator's Goodbye,
  // else of the first worker that failed, else 0.
  int run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
