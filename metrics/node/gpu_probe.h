// Shows all of this machine's GPUs that NVML sees, whatever CUDA_VISIBLE_DEVICES says. The labels
// of a GPU are its index in NVML and its UUID. Values that a GPU does not report are absent.
//
// Thread-safety: judge() and refresh() by one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "metrics/base/families.h"
#include "metrics/node/gpu_health.h"
#include "metrics/node/gpu_sampler.h"

namespace lockstep {

class GpuProbe {
 public:
  GpuProbe(Families& families, const std::string& nvml_library);
  ~GpuProbe();

  // Takes the verdicts of a watch (gpu_health.h) on the GPUs, by NVML's UUID. A GPU that it does
  // not name has no verdict.
  void judge(std::map<std::string, Fitness> verdicts) { verdicts_ = std::move(verdicts); }

  void refresh();  // call before writing the exposition

  // Why there are no metrics of GPUs, if the reason is known.
  Status status() const { return sampler_.status(); }

 private:
  class Gpu;

  Families& families_;
  GpuSampler sampler_;
  prometheus::Gauge& available_;
  OptionalGauge age_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::map<std::string, Fitness> verdicts_;
};

}  // namespace lockstep
