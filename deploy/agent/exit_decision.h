// What the agent does when one of its workers has ended, and how soon. Pure: facts in, decision and
// reason out.
//
//   crash       a signal, an abort, an internal error: started again at once, while its budget is
//               not spent; who dies soon after every start waits longer each time
//   preemption  it alone was told to go (SIGTERM): it left in order and exited with 75, or had not
//               come so far; another one is started, from a budget of its own
//   resize      fewer workers are wanted than there are: nothing is started, nothing is counted
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <string>

#include "deploy/agent/process.h"

namespace lockstep {

struct ExitFacts {
  ProcessEnd end;
  bool run_is_over = false;     // the coordinator has said goodbye
  bool stop_requested = false;  // somebody asked this agent to stop
  bool is_wanted = true;        // without it there are fewer workers here than wanted
  uint32_t crashes_left = 0;    // of this worker's budgets
  uint32_t preemptions_left = 0;
  uint32_t quick_deaths = 0;  // in a row, this one included: each soon after its start
};

enum class ExitAction {
  kExpected,  // nothing to do: it had finished, or it was told to end
  kReport,    // tell the coordinator: a death, and nobody takes its place
  kRestart,   // tell the coordinator, and start another one in its place
};

enum class ExitCause { kNone, kCrash, kPreemption };

struct ExitDecision {
  ExitAction action = ExitAction::kExpected;
  ExitCause cause = ExitCause::kNone;  // whose budget a restart is taken from
  int64_t pause_ms = 0;                // before the restart
  const char* reason = "";             // for the log; stable
};

ExitDecision decide_after_exit(const ExitFacts& facts);

// How long to wait before the restart of a process that has died `quick_deaths` times in a row soon
// after its start: nothing at first, then doubling up to limits::kRestartPauseMaxMs.
int64_t restart_pause_ms(uint32_t quick_deaths);

}  // namespace lockstep
