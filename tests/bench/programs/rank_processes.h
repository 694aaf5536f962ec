// Runs every rank of a measurement in a process of its own, over the host backend.
#pragma once

#include "tests/bench/programs/train_rank.h"

namespace lockstep::bench {

// One rank runs in this process, over loopback, on `gpu` unless that is null. More ranks are
// forked. The report is rank 0's.
Result<TrainReport> run_ranks(const TrainOptions& options, DeviceModule* gpu);

}  // namespace lockstep::bench
