// Shows all of this machine's GPUs that NVML sees, whatever CUDA_VISIBLE_DEVICES says. The labels
// of a GPU are its index in NVML and its UUID. Values that a GPU does not report are absent.
//
// Thread-safety: refresh() by one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metrics/base/families.h"
#include "metrics/node/gpu_sampler.h"

namespace lockstep {

class GpuProbe {
 public:
  GpuProbe(Families& families, const std::string& nvml_library);
  ~GpuProbe();

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
};

}  // namespace lockstep
