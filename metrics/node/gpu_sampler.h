// Reads the GPUs' values on a thread of its own. NVML does not return while the driver hangs, and
// the caller must not hang with it.
//
//   sample() ── asks ──▶ thread: init, read ──▶ the values, for this sample() or a later one
//      └── waits for at most limits::kGpuSampleWaitMs, and not at all if the thread did not answer
//          the last time
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

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "metrics/node/gpu_reader.h"

namespace lockstep {

struct GpuSamples {
  bool is_available = false;  // NVML has started
  bool is_answered = false;   // the values are of this sample(), not of an earlier one
  // Since the last reading; if there was none, since the first request.
  std::optional<double> age_seconds = {};
  std::vector<GpuSample> gpus = {};  // each at its index in NVML
};

class GpuSampler {
 public:
  explicit GpuSampler(const std::string& nvml_library,
                      GpuReader::Detail detail = GpuReader::Detail::kMetrics);

  // Waits for at most limits::kGpuLeaveWaitMs. Leaves a thread that hangs in the driver to itself.
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  // Waits for at most `wait_ms` for the answer.
  GpuSamples sample(int64_t wait_ms = limits::kGpuSampleWaitMs);

  // Why there is no NVML, if the reason is known; ok if there is one.
  Status status() const;

 private:
  struct Desk;
  const std::shared_ptr<Desk> desk_;
};

}  // namespace lockstep
