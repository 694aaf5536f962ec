// The weights that a run starts from: model.init, a file or a directory here or at a URL. Weights
// at a URL come into job.data.cache_dir first.
//
// Only a state of step 0 needs them: a worker that gets its state from a checkpoint or from a
// member never opens model.init.
//
// Errors as WeightFiles::open() and data::find_place(); kUsage for the index of a URL, whose files
// Lockstep cannot list.
//
// Thread-safety: free functions.
#pragma once

#include <span>
#include <string>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "comm/run/job/job.pb.h"
#include "data/base/progress.h"
#include "worker/model/weights/load_weights.h"

namespace lockstep {

// The local path of model.init. REQUIRES: the job has one.
Result<std::string> find_initial_weights(const wire::JobSpec& job,
                                         const data::ProgressFn& progress = {});

// load_weights() from there, after check_model_config(). kUsage if the content does not match
// model.init_sha256.
Result<WeightTable> load_initial_weights(const wire::JobSpec& job, const ModelLayout& layout,
                                         std::span<const StateTensor> state);

}  // namespace lockstep
