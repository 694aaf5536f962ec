// Observes the coordinator's journal and the batches of step records that arrive for it.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>

#include "metrics/base/families.h"

namespace lockstep {

class JournalProbe {
 public:
  explicit JournalProbe(Families& families);
  void committed(double seconds, uint64_t entries);  // one transaction, with its fsync
  void batch_received(uint64_t records);             // of step records, from one member

 private:
  prometheus::Histogram& commit_seconds_;
  prometheus::Counter& entries_;
  prometheus::Counter& batches_;
  prometheus::Counter& records_;
};

}  // namespace lockstep
