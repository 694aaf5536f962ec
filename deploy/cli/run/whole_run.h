// One run from its job to its last word, in a directory that is ours: what `lockstep run` does, and
// rank 0 of those that a launcher starts (launched_agent.h).
//
// Thread-safety: the main thread.
#pragma once

#include <string>
#include <vector>

#include "comm/wire/job.pb.h"
#include "deploy/agent/launch_record.h"
#include "deploy/cli/base/stop_signals.h"
#include "deploy/cli/run/own_run_dir.h"
#include "deploy/cli/watch/run_reporter.h"

namespace lockstep {

struct RunPlan {
  std::string seat;                      // supervisor.h
  bool resume = false;                   // what the directory holds is continued
  bool take_over = false;                // and its workers, elsewhere, still train
  std::string again;                     // the command that continues the run
  std::vector<std::string> agent_words;  // of the agent beside the coordinator; empty: none
  LaunchRecorder* launch = nullptr;      // that other ranks follow; null: there are none
};

// Prepares, supervises, tells the end. Gives the exit code; from here on `signals` are held.
int run_in(RunDir& dir, const RunPlan& plan, const wire::JobSpec& job, StopSignals& signals,
           Reporter& reporter);

}  // namespace lockstep
