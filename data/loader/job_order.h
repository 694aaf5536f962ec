// The order of a run's samples, from its job and its training data. All code that reads samples
// takes the order from here.
//
// Thread-safety: pure functions.
#pragma once

#include "comm/run/job/job.pb.h"
#include "comm/run/plan/epoch_order.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

OrderSpec job_order(const wire::JobSpec& job, const Dataset& train);

}  // namespace lockstep::data
