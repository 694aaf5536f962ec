// Shows the cost of reading data at a URL, and the savings of their cache. A process without such
// data has no such series.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "metrics/base/families.h"

namespace lockstep {

// Counts since the process began, except kept_bytes, which is the present value.
struct FarDataCounts {
  uint64_t reads_near = 0;  // pieces of objects that the cache had when they were needed
  uint64_t reads_far = 0;   // pieces that the cache did not have
  uint64_t fetched_bytes = 0;
  double fetch_seconds = 0;  // all requests together
  uint64_t kept_bytes = 0;   // on this machine's disk, by all its processes
};

class FarDataProbe {
 public:
  explicit FarDataProbe(Families& families) : families_(families) {}

  // Every refresh() from now on calls `counts`. Everything that it uses must live as long as the
  // probe.
  void watch(std::function<FarDataCounts()> counts);
  void refresh();  // call before writing the exposition

 private:
  Families& families_;
  std::mutex mutex_;
  std::function<FarDataCounts()> counts_;
};

}  // namespace lockstep
