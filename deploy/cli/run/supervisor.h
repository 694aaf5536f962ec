// `lockstep run` once all is prepared: starts coordinator and agent, restarts them when they die,
// shows progress, turns signals into an orderly end, and leaves no process behind.
//
//   coordinator ended ──▶ its code is the run's, or if that is 0 the one of a script that failed
//                         after its loop; the agent gets `leave_ms` to follow, and
//                         `more_for_workers_ms`, or ends now (SIGUSR2) if it has not
//                         heard of the end
//   coordinator died  ──▶ another one takes over (--take-over); the workers train on meanwhile.
//                         A coordinator that was never ready starts as before
//   coordinator superseded ──▶ another machine has it (comm/run/directory/claim.h); the agent stays
//                         and ends with the run
//   coordinator hangs ──▶ killed, which counts as a death. It hangs if its pulse stands still for
//                         kStillMs, or if it lives three beats after it was superseded
//   agent ended first ──▶ the coordinator gets `leave_ms` to notice and end the run
//   agent died        ──▶ another one starts, except during a stop; its workers died with it
//   first signal      ──▶ SIGTERM to the coordinator, later to the agent if need be: a
//                         checkpoint at the next agreed step, then code 75. A coordinator that dies
//                         meanwhile is started again, and told again
//   second signal     ──▶ SIGKILL to both and to all workers (SIGINT, or a person's second
//                         SIGTERM); within a second it is an echo (agent/stop_signal_watch.h)
//   SIGTSTP, SIGCONT  ──▶ coordinator, agent and workers stop, and continue, with this process
//
// A process dies if a signal ends it, or an exit code that is none of ours. Each child may restart
// limits::kSupervisedRestarts times in limits::kRestartWindowMs, with growing pauses when it dies
// soon after its start. The supervisor does not restart a child that cannot run here (a missing
// library), or that has died so kQuickDeaths times in a row.
//
// Invariants
//   1. run() returns only when no child of the run is left, workers of a dead agent included (this
//      process is their subreaper). Other children, of the shell that became this process, stay.
//   2. If this process is killed, coordinator and agent get SIGTERM from the kernel, and the
//      workers die with the agent.
//   3. A signal waits until the coordinator can handle it, which is once that process has written
//      coordinator.json.
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
  std::string seat;                      // comm/run/directory/claim.h; empty: this process
  std::vector<std::string> agent_words;  // arguments of the agent; empty: no agent here
  bool resume = false;
  bool take_over = false;           // workers on other machines still train
  bool is_launched = false;         // a launcher sends SIGTERM more than once and has a SIGKILL
  int64_t grace_ms = 60'000;        // from a stop to SIGKILL
  int64_t leave_ms = 20'000;        // one child may outlive the other this long
  int64_t more_for_workers_ms = 0;  // beyond leave_ms: what cluster.leave_s gives scripts
};

struct RunEnd {
  int exit_code = 0;
  std::string trouble;  // a sentence if a child died or was killed, else empty
  bool stop_requested = false;
  bool is_complete = false;  // the run; the exit code may come from a script after its loop
};

class Supervisor {
 public:
  Supervisor(SupervisorOptions options, Reporter& reporter);
  ~Supervisor();

  // Handles SIGINT, SIGTERM, SIGHUP and SIGUSR1 from now on, and a signal that was held until now.
  RunEnd run(StopSignals& held);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
