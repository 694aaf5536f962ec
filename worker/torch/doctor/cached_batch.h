// A few samples of a data set as a data set of their own in memory, as the model sees them. No time
// goes into reading them, so the doctor can measure the trainer alone.
//
// Thread-safety: immutable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"

namespace lockstep {

// The first `samples` samples of the first epoch, in its order. `dataset` outlives the result.
// Images are cut and decoded, but not varied.
Result<std::unique_ptr<data::Dataset>> cache_batch(const data::Dataset& dataset,
                                                   const wire::JobSpec& job, uint64_t samples);

}  // namespace lockstep
