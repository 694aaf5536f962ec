// Computes how fast the run is and how well it learns lately, by the clock on the wall:
// evaluations, checkpoints and deaths within the span count.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "coordinator/journal/journal_entry.h"
#include "coordinator/report/recent_sums.h"

namespace lockstep::coordinator {

struct WatchedSums {
  uint64_t steps = 0;
  uint64_t samples = 0;
  uint64_t correct = 0;
  uint64_t finite = 0;  // steps whose loss is a number
  double loss_sum = 0;  // over these

  void add(const WatchedSums& other);
};

class StepWatch {
 public:
  void add(int64_t now_ms, const StepEntry& step);

  // Samples a second. Nothing while less than a second has been watched, and nothing if no step
  // ended within the span though one may last that long.
  std::optional<double> samples_per_second(Span span, int64_t now_ms) const;
  // Means over the steps of the span; nothing without one.
  std::optional<double> loss(Span span, int64_t now_ms) const;
  std::optional<double> correct_per_sample(Span span, int64_t now_ms) const;

 private:
  RecentSums<WatchedSums> recent_;
  uint64_t last_wall_us_ = 0;
  bool no_accuracy_ = false;
};

}  // namespace lockstep::coordinator
