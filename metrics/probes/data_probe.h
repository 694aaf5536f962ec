// Shows how much of its data a worker reads ahead of their use, and which reader it uses.
//
// Thread-safety: show() from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "metrics/base/families.h"

namespace lockstep {

// Counts since the worker began.
struct DataRead {
  std::string reader;  // the reader in use; "": none yet
  uint64_t reads = 0;
  uint64_t ahead_bytes = 0;  // at present
};

class DataProbe {
 public:
  explicit DataProbe(Families& families);
  void show(const DataRead& read);

 private:
  std::mutex mutex_;  // two calls at once would raise the same counters twice
  InfoMetric reader_;
  prometheus::Counter& reads_;
  prometheus::Gauge& ahead_bytes_;
};

}  // namespace lockstep
