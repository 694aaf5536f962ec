// One run from its job to its last message, in a directory that is ours. `lockstep run` does this,
// and so does rank 0 under a launcher (launched_agent.h).
//
// Thread-safety: the main thread.
#pragma once

#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "deploy/agent/launch_record.h"
#include "deploy/cli/base/stop_signals.h"
#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/watch/run_reporter.h"

namespace lockstep {

struct RunPlan {
  std::string seat;                      // supervisor.h
  bool resume = false;                   // continue the run in the directory
  std::string from_checkpoint;           // rebuild the lost journal from it first; empty: no
  bool take_over = false;                // workers on other machines still train
  std::string again;                     // the command that continues the run
  std::vector<std::string> agent_words;  // arguments of the agent; empty: no agent here
  LaunchRecorder* launch = nullptr;      // other ranks follow it; null: there are none
};

// Prepares and supervises the run, tells its end, and returns the exit code. Holds `signals`.
int run_in(RunDir& dir, const RunPlan& plan, const wire::JobSpec& job, StopSignals& signals,
           Reporter& reporter);

}  // namespace lockstep
