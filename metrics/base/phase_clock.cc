#include "metrics/base/phase_clock.h"

#include <numeric>
#include <utility>

namespace lockstep {

std::string_view phase_name(WorkPhase phase) {
  static constexpr std::array<std::string_view, kWorkPhases> kNames = {
      "init",          "idle",      "data_wait", "copy",       "forward",  "backward",
      "communication", "optimizer", "eval",      "checkpoint", "recovery", "other"};
  return kNames[static_cast<size_t>(phase)];
}

int64_t PhaseTotals::sum() const {
  return std::accumulate(ns.begin(), ns.end(), int64_t{0});
}

int64_t PhaseTotals::useful() const {
  return of(WorkPhase::kForward) + of(WorkPhase::kBackward) + of(WorkPhase::kOptimizer);
}

PhaseTotals PhaseTotals::since(const PhaseTotals& earlier) const {
  PhaseTotals difference;
  for (size_t i = 0; i < kWorkPhases; ++i) difference.ns[i] = ns[i] - earlier.ns[i];
  return difference;
}

PhaseClock::PhaseClock(const Clock& clock, WorkPhase first)
    : clock_(clock), current_(first), since_ns_(clock.monotonic_ns()) {}

WorkPhase PhaseClock::switch_to(WorkPhase next) {
  WorkPhase ended = next;
  int64_t begin_ns = 0;
  int64_t now_ns = 0;
  {
    std::lock_guard lock(mutex_);
    now_ns = clock_.monotonic_ns();
    totals_.ns[static_cast<size_t>(current_)] += now_ns - since_ns_;
    begin_ns = std::exchange(since_ns_, now_ns);
    ended = std::exchange(current_, next);
  }
  if (observer_) observer_(ended, begin_ns, now_ns);
  return ended;
}

WorkPhase PhaseClock::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

PhaseTotals PhaseClock::snapshot() const {
  std::lock_guard lock(mutex_);
  PhaseTotals now = totals_;
  now.ns[static_cast<size_t>(current_)] += clock_.monotonic_ns() - since_ns_;
  return now;
}

}  // namespace lockstep
