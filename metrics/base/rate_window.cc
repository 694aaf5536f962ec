#include "metrics/base/rate_window.h"

namespace lockstep {

void RateWindow::update(int64_t now_ns, double total) {
  std::lock_guard lock(mutex_);
  if (total < total_) count_ = 0;
  total_ = total;
  if (count_ > 0 && now_ns - points_[newest_].ns < kPointNs) return;
  if (count_ > 0) newest_ = (newest_ + 1) % kPoints;
  points_[newest_] = {now_ns, total};
  if (count_ < kPoints) ++count_;
}

double RateWindow::per_second(int64_t now_ns) const {
  std::lock_guard lock(mutex_);
  if (count_ == 0) return 0;
  // Skips points older than the window, unless there is nothing else to compare with.
  const int64_t oldest_wanted = now_ns - kPointNs * static_cast<int64_t>(kPoints);
  for (size_t age = count_; age-- > 0;) {
    const Point& point = points_[(newest_ + kPoints - age) % kPoints];
    if (point.ns < oldest_wanted && age > 0) continue;
    const int64_t elapsed_ns = now_ns - point.ns;
    return elapsed_ns <= 0 ? 0 : (total_ - point.total) * 1e9 / static_cast<double>(elapsed_ns);
  }
  return 0;
}

}  // namespace lockstep
