// Measures the rungs of the data: the samples of a job's first batches, with one worker's share of
// the threads, cold first. Every rung uses the same samples.
//
// Thread-safety: one thread; a call starts others and ends them before it returns.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/plan/step_plan.h"
#include "data/dataset/dataset.h"
#include "data/doctor/measurements.h"

namespace lockstep::doctor {

struct LadderOptions {
  double seconds = 20;  // for all rungs together
  // If true, measure_data() returns with what it has. It asks between parts, which take
  // milliseconds.
  std::function<bool()> is_cut = [] { return false; };
  // Gets what is being measured.
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
};

// One worker's share of a job's slots, as the shape of a run of its own.
RunShape share_of_worker(const wire::JobSpec& job, uint64_t samples);

// For one worker of a job. REQUIRES: the global batch is a number.
Setting setting_of(const wire::JobSpec& job, const data::Dataset& dataset);

// Adds the rungs below the trainer to `out`; fewer of them if is_cut() says so. Errors as Loader's.
// REQUIRES: out.setting is set.
Status measure_data(const wire::JobSpec& job, const data::Dataset& dataset,
                    const LadderOptions& options, Measurements& out);

}  // namespace lockstep::doctor
