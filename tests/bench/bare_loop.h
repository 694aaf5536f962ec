// The yardstick: the same model in the shortest LibTorch loop there is. Batches are tensors made
// beforehand, gradients stay where autograd puts them, the optimizer is LibTorch's fused AdamW.
#pragma once

#include "comm/base/status.h"
#include "tests/bench/train_options.h"
#include "tests/bench/train_report.h"

namespace lockstep::bench {

Result<TrainReport> run_bare_loop(const TrainOptions& options);

}  // namespace lockstep::bench
