// Observes the gradient buckets that a worker reduces with its peers.
//
// Thread-safety: reduced() from any thread.
#pragma once

#include <cstdint>

#include "metrics/base/families.h"

namespace lockstep {

class ReductionProbe {
 public:
  explicit ReductionProbe(Families& families);
  void reduced(uint64_t bucket_bytes);  // one bucket; its size, not the bytes that travelled

 private:
  prometheus::Counter& buckets_;
  prometheus::Counter& bytes_;
};

}  // namespace lockstep
