// The kernel's figures about this process: start time, memory, processor time, threads, files.
//
// Thread-safety: refresh() from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "metrics/base/families.h"

namespace lockstep {

struct ProcessUsage {
  double start_time_seconds = 0;  // since 1970-01-01 UTC
  double cpu_seconds = 0;         // user and system, all threads
  int64_t resident_bytes = 0;
  int64_t threads = 0;
  int64_t open_files = 0;
};

// Reads /proc/self. None if there is no such file system.
std::optional<ProcessUsage> read_process_usage();

class ProcessProbe {
 public:
  explicit ProcessProbe(Families& families);
  void refresh();  // call before writing the exposition

 private:
  prometheus::Gauge& start_time_;
  prometheus::Counter& cpu_;
  prometheus::Gauge& resident_;
  prometheus::Gauge& threads_;
  prometheus::Gauge& open_files_;
};

}  // namespace lockstep
