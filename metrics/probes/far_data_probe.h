// What reading data that are far away costs, and what their cache spares. Without such data there
// is no such series.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "metrics/base/families.h"

namespace lockstep {

// Since the process began, but kept_bytes, which is now.
struct FarDataCounts {
  uint64_t reads_near = 0;  // pieces of objects that were near when they were needed
  uint64_t reads_far = 0;   // that were not
  uint64_t fetched_bytes = 0;
  double fetch_seconds = 0;  // of all requests together
  uint64_t kept_bytes = 0;   // on this machine's disk, of all its processes
};

class FarDataProbe {
 public:
  explicit FarDataProbe(Families& families) : families_(families) {}

  // Is called at every refresh() from now on; what it asks must live as long.
  void watch(std::function<FarDataCounts()> counts);
  void refresh();  // before the exposition is written

 private:
  Families& families_;
  std::mutex mutex_;
  std::function<FarDataCounts()> counts_;
};

}  // namespace lockstep
