// Measures a rate over a few short windows, to get its spread too.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/status.h"
#include "data/doctor/measurements.h"

namespace lockstep::doctor {

struct WindowPlan {
  uint32_t windows = 5;
  double window_s = 0.2;
  // True: no window begins any more. The one that is open ends, unless no part of it is done.
  std::function<bool()> is_over = [] { return false; };
};

class Windows {
 public:
  // `clock` outlives it.
  Windows(const Clock& clock, const WindowPlan& plan) : clock_(clock), plan_(plan) {}

  // `part` does some work and returns the number of samples. measure() calls it until a window is
  // over, at least once in each window. When the planned time of all windows is gone, measure()
  // starts no more windows.
  using PartFn = std::function<Result<uint64_t>()>;
  Result<Rate> measure(const PartFn& part);

  // Call it within a part: no window counts the time of `work`.
  template <typename Work>
  auto aside(const Work& work) {
    const int64_t begin_ns = clock_.monotonic_ns();
    auto result = work();
    aside_ns_ += clock_.monotonic_ns() - begin_ns;
    return result;
  }

 private:
  int64_t now_ns() const { return clock_.monotonic_ns() - aside_ns_; }

  const Clock& clock_;
  const WindowPlan plan_;
  int64_t aside_ns_ = 0;
};

}  // namespace lockstep::doctor
