// Shows what a worker reads of its data ahead of their use, and by what.
//
// Thread-safety: show() from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "metrics/base/families.h"

namespace lockstep {

// Since the worker began.
struct DataRead {
  std::string reader;  // in use; "": none yet
  uint64_t reads = 0;
  uint64_t ahead_bytes = 0;  // now
};

class DataProbe {
 public:
  explicit DataProbe(Families& families);
  void show(const DataRead& read);

 private:
  std::mutex mutex_;  // two at once would raise the same counters twice
  InfoMetric reader_;
  prometheus::Counter& reads_;
  prometheus::Gauge& ahead_bytes_;
};

}  // namespace lockstep
