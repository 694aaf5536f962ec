#include "coordinator/report/step_watch.h"

#include <cmath>

namespace lockstep::coordinator {

void WatchedSums::add(const WatchedSums& other) {
  steps += other.steps;
  samples += other.samples;
  correct += other.correct;
  finite += other.finite;
  loss_sum += other.loss_sum;
}

void StepWatch::add(int64_t now_ms, const StepEntry& step) {
  const bool is_finite = std::isfinite(step.loss);
  recent_.add(now_ms,
              {1, step.samples, step.correct, is_finite ? 1u : 0u, is_finite ? step.loss : 0});
  last_wall_us_ = step.wall_us;
  no_accuracy_ = step.no_accuracy;
}

std::optional<double> StepWatch::samples_per_second(Span span, int64_t now_ms) const {
  constexpr double kLeastSeconds = 1;
  constexpr double kLongStep = 0.5;  // of the span
  const double seconds = recent_.seconds(span, now_ms);
  if (seconds < kLeastSeconds) return std::nullopt;
  const WatchedSums sums = recent_.of(span, now_ms);
  const bool may_last = static_cast<double>(last_wall_us_) / 1e6 > kLongStep * seconds;
  if (sums.steps == 0 && may_last) return std::nullopt;
  return static_cast<double>(sums.samples) / seconds;
}

std::optional<double> StepWatch::loss(Span span, int64_t now_ms) const {
  const WatchedSums sums = recent_.of(span, now_ms);
  if (sums.finite == 0) return std::nullopt;
  return sums.loss_sum / static_cast<double>(sums.finite);
}

std::optional<double> StepWatch::correct_per_sample(Span span, int64_t now_ms) const {
  const WatchedSums sums = recent_.of(span, now_ms);
  if (sums.samples == 0 || no_accuracy_) return std::nullopt;
  return static_cast<double>(sums.correct) / static_cast<double>(sums.samples);
}

}  // namespace lockstep::coordinator
