// Says how a run loads its batches, from its job and its training data. All code that trains takes
// it from here.
//
// Thread-safety: pure functions.
#pragma once

#include <memory>

#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"
#include "data/loader/loader.h"
#include "data/loader/loader_tuning.h"

namespace lockstep::data {

uint32_t job_decode_threads(const wire::JobSpec& job, const Dataset& dataset);

// All options except the batches to load and the objects that hear of them or help to read them.
LoaderOptions job_loader_options(const wire::JobSpec& job, const Dataset& train);

// Null where data.tune is off.
std::unique_ptr<LoaderTuning> make_job_tuning(const wire::JobSpec& job, const Dataset& train);

}  // namespace lockstep::data
