// The order of a run's samples, from its job and its training data. All who read samples take the
// order from here.
//
// Thread-safety: pure functions.
#pragma once

#include "comm/wire/job.pb.h"
#include "data/dataset/dataset.h"
#include "data/order/epoch_order.h"

namespace lockstep::data {

OrderSpec job_order(const wire::JobSpec& job, const Dataset& train);

}  // namespace lockstep::data
