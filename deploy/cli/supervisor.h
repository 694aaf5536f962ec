// `lockstep run` once everything is prepared: starts coordinator and agent, shows what goes on,
// turns signals into an orderly end, and leaves no process behind.
//
//   coordinator ended ──▶ its code is the run's; the agent gets `leave_ms` to follow
//   agent ended first ──▶ the coordinator gets `leave_ms` to notice and end the run
//   first signal      ──▶ SIGTERM to both: a checkpoint at the next agreed step, then code 75
//   second signal     ──▶ SIGKILL to both and to all workers
//
// Invariants
//   1. run() returns only when this process has no child left, workers of a dead agent included
//      (it is their subreaper).
//   2. If this process is killed, coordinator and agent get SIGTERM from the kernel, and the
//   workers
//      die with the agent.
//
// Thread-safety: one thread, which must be the main one (parent-death signals).
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "deploy/cli/reporter.h"

namespace lockstep {

struct SupervisorOptions {
  std::string run_dir;
  uint32_t workers = 1;
  bool resume = false;
  int64_t grace_ms = 60'000;  // from a stop to SIGKILL
  int64_t leave_ms = 20'000;  // that one child may outlive the other
};

struct RunEnd {
  int exit_code = 0;
  std::string trouble;  // a sentence when something died or was killed, else empty
  bool stop_requested = false;
};

class Supervisor {
 public:
  Supervisor(SupervisorOptions options, Reporter& reporter);
  ~Supervisor();

  RunEnd run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
