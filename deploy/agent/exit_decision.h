// Decides what the agent does after a worker's end, and how soon. Pure.
//
//   crash       a signal, an abort, an internal error: restart at once, within the worker's budget.
//               A worker that dies soon after every start waits longer each time
//   preemption  SIGTERM to this worker alone, which exited with 75 or had not come so far: restart,
//               within a budget of its own
//   resize      fewer workers are wanted: neither restart nor count. If a worker dies that the
//               coordinator meant to keep, too few are here once the one that the coordinator
//               leaves out has gone: restart
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <string>

#include "deploy/agent/process.h"

namespace lockstep {

inline constexpr int kCheckpointedExit = 75;  // stopped with a checkpoint; run again to go on

// Whether a run, a coordinator or an agent was neither done nor stopped with a checkpoint.
inline bool is_failure(int exit_code) {
  return exit_code != 0 && exit_code != kCheckpointedExit;
}

struct ExitFacts {
  ProcessEnd end;
  bool run_is_over = false;     // the coordinator has said goodbye
  bool stop_requested = false;  // this agent was asked to stop
  bool is_wanted = true;        // without it fewer workers would be here than wanted
  bool has_lost_other = false;  // another one died as surplus since the wanted number changed
  uint32_t crashes_left = 0;    // of this worker's budgets
  uint32_t preemptions_left = 0;
  uint32_t quick_deaths = 0;  // in a row, this one included: each soon after its start
};

enum class ExitAction {
  kExpected,  // nothing to do: it finished, or was told to end
  kReport,    // tell the coordinator of a death without a restart
  kRestart,   // tell the coordinator, and restart
};

enum class ExitCause { kNone, kCrash, kPreemption };

struct ExitDecision {
  ExitAction action = ExitAction::kExpected;
  ExitCause cause = ExitCause::kNone;  // the budget that a restart is taken from
  int64_t pause_ms = 0;                // before the restart
  const char* reason = "";             // for the log; stable
};

ExitDecision decide_after_exit(const ExitFacts& facts);

// The pause before the restart of a process that died `quick_deaths` times in a row soon after its
// start: none at first, then doubling up to limits::kRestartPauseMaxMs.
int64_t restart_pause_ms(uint32_t quick_deaths);

}  // namespace lockstep
