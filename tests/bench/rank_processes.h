// Runs every rank of a measurement in a process of its own, over the host backend.
#pragma once

#include "tests/bench/train_rank.h"

namespace lockstep::bench {

// One rank runs right here, over loopback. More are forked; the report is rank 0's.
Result<TrainReport> run_ranks(const TrainOptions& options);

}  // namespace lockstep::bench
