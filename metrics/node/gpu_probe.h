// Shows what NVML knows about this machine's GPUs: all of them, whatever CUDA_VISIBLE_DEVICES says.
// The labels of a GPU are its index in NVML and its UUID. What it does not tell is not there.
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

  void refresh();  // before the exposition is written

  // Why there are no metrics of GPUs, as far as it is known.
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
