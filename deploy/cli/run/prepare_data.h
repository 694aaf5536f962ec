// Prepares the data of a job before any process starts: opens and checks them, inflates them into
// the cache, and computes statistics. A mistake is then one clear line, and workers find all ready.
//
// Thread-safety: free functions.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

struct PreparedData {
  wire::DataFacts facts;    // with their legend
  std::string model;        // "resnet18 (stem cifar)", as the data make it
  std::string description;  // "60,000 samples of 28x28x1 in 10 classes, 10,000 for evaluation";
                            // empty: only the script knows
};

// A script opens its data itself: facts are then open. Calls `progress` with sentences while work
// takes long. Errors as data::open_run_data().
Result<PreparedData> prepare_data(const wire::JobSpec& job, const std::string& run_dir,
                                  const std::function<void(const std::string&)>& progress);

}  // namespace lockstep
