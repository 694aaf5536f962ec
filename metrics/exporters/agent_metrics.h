// An agent's metrics at /metrics: its machine and the machine's GPUs, its workers' lives, and
// itself.
//
// Thread-safety: all calls from any thread.
//
// Invariant: the labels run and node are on every series and never change.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "comm/base/build_info.h"
#include "metrics/base/families.h"
#include "metrics/node/gpu_probe.h"
#include "metrics/node/node_probe.h"
#include "metrics/probes/process_probe.h"
#include "metrics/probes/tls_probe.h"

namespace lockstep {

struct AgentTarget {
  std::string run;  // id of the run
  std::string node;
  std::string run_dir;
  std::string nvml_library = nvml::kLibrary;
};

class AgentMetrics {
 public:
  AgentMetrics(const AgentTarget& target, const BuildInfo& build);

  // Call before writing the exposition: the number of workers that run here, and of deaths so far.
  void workers(uint64_t living, uint64_t deaths);

  // The verdicts on this machine's GPUs, as GpuProbe::judge().
  void verdicts(std::map<std::string, Fitness> of_gpus);

  TlsProbe& tls() { return tls_; }
  const GpuProbe& gpus() const { return gpus_; }

  // The exposition, of type kMetricsContentType.
  std::string expose_text();

 private:
  Families families_;
  InfoMetric build_;
  NodeProbe node_;
  GpuProbe gpus_;
  ProcessProbe process_;
  TlsProbe tls_;
  prometheus::Gauge& living_;
  prometheus::Counter& deaths_;
  std::mutex scrape_;
};

}  // namespace lockstep
