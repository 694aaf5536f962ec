// What the agent does when one of its workers has ended. Pure: facts in, decision and reason out.
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
  uint32_t restarts_left = 0;   // of this worker's budget
};

enum class ExitAction {
  kExpected,  // nothing to do: it had finished, or it was told to end
  kReport,    // tell the coordinator: a death
  kRestart,   // tell the coordinator, and start another one in its place
};

struct ExitDecision {
  ExitAction action = ExitAction::kExpected;
  const char* reason = "";  // for the log; stable
};

ExitDecision decide_after_exit(const ExitFacts& facts);

}  // namespace lockstep
