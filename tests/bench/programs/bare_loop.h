// The yardstick: the same model in the shortest possible LibTorch loop. Batches are tensors made
// beforehand, gradients stay where autograd puts them, and the optimizer is LibTorch's fused AdamW.
#pragma once

#include "comm/base/status.h"
#include "tests/bench/programs/train_options.h"
#include "tests/bench/programs/train_report.h"
#include "worker/cuda/device_module.h"

namespace lockstep::bench {

// `gpu`: null for the CPU.
Result<TrainReport> run_bare_loop(const TrainOptions& options, const DeviceModule* gpu);

}  // namespace lockstep::bench
