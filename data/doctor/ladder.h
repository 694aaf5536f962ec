// Measures the rungs of the data: the samples of a job's first batches, by one worker's share of
// the threads, cold first. The samples are the same on every rung.
//
// Thread-safety: one thread; it starts others for the time of the call.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "data/dataset/dataset.h"
#include "data/doctor/measurements.h"
#include "data/order/step_plan.h"

namespace lockstep::doctor {

struct LadderOptions {
  double seconds = 20;  // for all rungs together, about
  // Told what is being measured.
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
};

// What one worker does of a job: its share of the slots, as a run of its own.
data::RunShape share_of_worker(const wire::JobSpec& job, uint64_t samples);

// Of one worker of a job with a global batch that is a number.
Setting setting_of(const wire::JobSpec& job, const data::Dataset& dataset);

// Adds the rungs below the trainer to `out`, whose setting is there. Errors as Loader's.
Status measure_data(const wire::JobSpec& job, const data::Dataset& dataset,
                    const LadderOptions& options, Measurements& out);

}  // namespace lockstep::doctor
