#include "coordinator/report/run_stats.h"

namespace lockstep::coordinator {

void RunStats::begin(const std::vector<StepPiece>& pieces) {
  for (const StepPiece& piece : pieces) curves_.add(piece);
  if (!pieces.empty()) totals_ = pieces.back().totals;
}

void RunStats::add(const StepEntry& step) {
  last_ = step;
  curves_.add(step);
  totals_.add(step);
  in_window_.add(step);
  window_.push_back(step);
  if (window_.size() <= kWindowSteps) return;
  in_window_.samples -= window_.front().samples;
  in_window_.correct -= window_.front().correct;
  in_window_.wall_us -= window_.front().wall_us;
  window_.pop_front();
}

double RunStats::samples_per_second() const {
  return in_window_.rate();
}

double RunStats::seconds_per_step() const {
  if (window_.empty()) return 0;
  return static_cast<double>(in_window_.wall_us) / 1e6 / static_cast<double>(window_.size());
}

std::optional<double> RunStats::correct_per_sample() const {
  if (last_.no_accuracy) return std::nullopt;
  if (in_window_.samples == 0) return 0;
  return static_cast<double>(in_window_.correct) / static_cast<double>(in_window_.samples);
}

double RunStats::steady_samples_per_second() const {
  return totals_.steady.wall_us > 0 ? totals_.steady.rate() : totals_.all.rate();
}

}  // namespace lockstep::coordinator
