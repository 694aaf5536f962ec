// One rank of a measurement, over a Collective that its caller has connected.
#pragma once

#include <functional>

#include "comm/base/status.h"
#include "comm/collectives/collective.h"
#include "tests/bench/programs/train_options.h"
#include "tests/bench/programs/train_report.h"
#include "worker/cuda/device_module.h"

namespace lockstep::bench {

// How a rank gets its memory and its peers. Each is called once, in this order.
struct RankBackend {
  std::function<Result<std::unique_ptr<GradientBuffer>>(const BufferLayout&, uint32_t regions)>
      make_buffer;
  std::function<Result<Collective*>(GradientBuffer&)> connect;
  DeviceModule* gpu = nullptr;  // null: the CPU
};

// Trains the warm-up and then the timed steps.
Result<TrainReport> train_rank(const TrainOptions& options, const RankBackend& backend);

}  // namespace lockstep::bench
