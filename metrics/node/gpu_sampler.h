// Reads the GPUs' values on a thread of its own, because NVML does not return while the driver
// hangs, and who asks for the values must not hang with it.
//
//   sample() ── asks ──▶ thread: init, read ──▶ the values, for this sample() or a later one
//      └── waits for limits::kGpuSampleWaitMs at most, and not at all for a thread that did not
//          answer the last time
//
// Without NVML's library there is no thread.
//
// Thread-safety: all calls from one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "metrics/node/gpu_reader.h"

namespace lockstep {

struct GpuSamples {
  bool is_available = false;               // NVML has started
  std::optional<double> age_seconds = {};  // since the values were read; none were: since asked for
  std::vector<GpuSample> gpus = {};        // each at the index that it has in NVML
};

class GpuSampler {
 public:
  explicit GpuSampler(const std::string& nvml_library);

  // Waits limits::kGpuLeaveWaitMs at most: a thread that hangs in the driver is left to itself.
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  GpuSamples sample();

  // Why there is no NVML, as far as it is known; ok if there is one.
  Status status() const;

 private:
  struct Desk;
  const std::shared_ptr<Desk> desk_;
};

}  // namespace lockstep
