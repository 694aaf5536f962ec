// The data of a job as its run sees them: opened, selected by data.train.fraction,
// data.eval.fraction and data.holdout, and mixed with data.mix.
//
// All code that trains, evaluates, plans or replays opens data here, so all of it numbers the same
// samples.
//
// Thread-safety: free functions.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

struct RunData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> eval;  // null: no evaluation
};

// Errors as open_dataset(). kUsage if a selection has no sample or the data sets of a mixture do
// not fit each other; kBadData if evaluation data do not fit the training data (facts.h).
Result<RunData> open_run_data(const wire::JobSpec& job, const std::string& cache_dir,
                              const ProgressFn& progress = {});

// Opens only the training data.
Result<std::unique_ptr<Dataset>> open_train_data(const wire::JobSpec& job,
                                                 const std::string& cache_dir,
                                                 const ProgressFn& progress = {});

}  // namespace lockstep::data
