// The growth rate of a total over the last seconds, not over the whole run.
//
// update() is cheap enough for every step: it keeps one point a second, so the window holds at most
// kPoints of them. The rate runs from the oldest point of the window to now. So it falls towards
// zero when the total stands still, instead of showing the last good value without end.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace lockstep {

class RateWindow {
 public:
  static constexpr int64_t kPointNs = 1'000'000'000;
  static constexpr size_t kPoints = 16;

  // `total` is the value at `now_ns` (monotonic). A total below the last one starts the window
  // again.
  void update(int64_t now_ns, double total);

  // The rate a second of the last total, from the oldest point to `now_ns`. 0 without two points in
  // time.
  double per_second(int64_t now_ns) const;

 private:
  struct Point {
    int64_t ns = 0;
    double total = 0;
  };

  mutable std::mutex mutex_;
  std::array<Point, kPoints> points_;  // a ring of `count_` points, the newest at `newest_`
  size_t count_ = 0;
  size_t newest_ = 0;
  double total_ = 0;
};

}  // namespace lockstep
