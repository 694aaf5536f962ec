// Shows how busy this machine is, and how much room the run directory has left.
//
// Thread-safety: refresh() by one thread at a time.
#pragma once

#include <array>
#include <string>

#include "metrics/base/families.h"
#include "metrics/node/node_usage.h"

namespace lockstep {

class NodeProbe {
 public:
  NodeProbe(Families& families, std::string run_dir);
  void refresh();  // call before writing the exposition

 private:
  const std::string run_dir_;
  prometheus::Gauge& cpus_;
  std::array<prometheus::Counter*, kCpuModes.size()> cpu_seconds_{};
  prometheus::Gauge& memory_;
  prometheus::Gauge& memory_available_;
  prometheus::Counter& disk_read_;
  prometheus::Counter& disk_written_;
  prometheus::Counter& network_received_;
  prometheus::Counter& network_sent_;
  prometheus::Gauge& run_dir_bytes_;
  prometheus::Gauge& run_dir_available_;
};

}  // namespace lockstep
