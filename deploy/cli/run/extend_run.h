// Says how to lengthen a run that has all its steps, and what another length does to its learning
// rate.
//
// For a new length, Lockstep computes a schedule that falls to the end of the run (linear, cosine,
// onecycle) again: the rate of a finished run, which is near 0, then jumps up.
//
// Thread-safety: free functions; they read files of the run directory.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/ids.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

// Overrides with which `--resume` goes on, about as long as the run was, at a rate that does not
// jump up. REQUIRES: the job is resolved.
std::string longer_by(const wire::JobSpec& job, const wire::DataFacts& facts);

// Whether train.patience has ended a run with this job that has applied `steps` steps.
bool is_ended_by_patience(const wire::JobSpec& job, const wire::DataFacts& facts, Step steps);

// Why a run with this job that has all its steps is over: "train.max_steps is 100".
std::string what_ends(const wire::JobSpec& job, const wire::DataFacts& facts);

// "Try next" for a run that finished.
std::string next_commands(const std::string& run_dir);

// A sentence if step `step` has another learning rate under `wanted` than under `before`, by more
// than a half; else "".
std::string rate_change(const wire::JobSpec& before, const wire::JobSpec& wanted,
                        const wire::DataFacts& facts, Step step);

// The same for a resume of the run in `run_dir` from its newest checkpoint.
std::string rate_change_on_resume(const std::string& run_dir, const wire::JobSpec& wanted,
                                  const wire::DataFacts& facts);

}  // namespace lockstep
