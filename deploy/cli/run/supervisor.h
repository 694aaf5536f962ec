// `lockstep run` once everything is prepared: starts coordinator and agent, starts them again when
// they die, shows what goes on, turns signals into an orderly end, and leaves no process behind.
//
//   coordinator ended ──▶ its code is the run's; the agent gets `leave_ms` to follow
//   coordinator died  ──▶ another one takes over (--take-over); the workers train on meanwhile.
//                         One that was never ready is started as it was
//   coordinator superseded ──▶ another machine has it (coordinator/claims/claim.h): the agent
//   stays, and
//                         ends with the run
//   coordinator hangs ──▶ its pulse stands still for kStillMs, or it is there three beats after it
//                         was superseded: it is killed, and that is a death
//   agent ended first ──▶ the coordinator gets `leave_ms` to notice and end the run
//   agent died        ──▶ another one is started; its workers died with it. Not during a stop
//   first signal      ──▶ SIGTERM to the coordinator, to the agent only if that is not enough: a
//                         checkpoint at the next agreed step, then code 75. A coordinator that dies
//                         meanwhile is started again, and told again
//   second signal     ──▶ SIGKILL to both and to all workers: SIGINT, or SIGTERM twice from a
//   person
//
// To die is to end with a signal or a code that is none of ours. limits::kSupervisedRestarts of
// each are allowed in limits::kRestartWindowMs, with growing pauses when deaths come soon after
// starts.
//
// Invariants
//   1. run() returns only when this process has no child left, workers of a dead agent included
//      (it is their subreaper).
//   2. If this process is killed, coordinator and agent get SIGTERM from the kernel, and the
//      workers die with the agent.
//   3. A signal is never sent to a coordinator that could not handle it yet: it waits until
//      coordinator.json is of that process.
//
// Thread-safety: one thread, which must be the main one (parent-death signals).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "deploy/cli/base/stop_signals.h"
#include "deploy/cli/watch/run_reporter.h"

namespace lockstep {

struct SupervisorOptions {
  std::string run_dir;
  std::string seat;                      // coordinator/claims/claim.h; empty: this process
  std::vector<std::string> agent_words;  // arguments of the agent; empty: there is none here
  bool resume = false;
  bool take_over = false;     // the run's workers, elsewhere, still train
  bool is_launched = false;   // by a launcher, which sends SIGTERM more than once and has a SIGKILL
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

  // Handles SIGINT, SIGTERM, SIGHUP and SIGUSR1 from now on; also one that was held until here.
  RunEnd run(StopSignals& held);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
