#include "coordinator/report/run_stats.h"

namespace lockstep::coordinator {

void RunStats::add(const StepEntry& step) {
  const auto include = [&step](Sum& sum) {
    sum.samples += step.samples;
    sum.correct += step.correct;
    sum.wall_us += step.wall_us;
  };
  if (step.generation != last_.generation) warm_in_ = kWarmUpSteps;
  last_ = step;
  curves_.add(step);
  include(all_);
  if (warm_in_ > 0) {
    --warm_in_;
  } else {
    include(steady_);
  }
  include(in_window_);
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
  return steady_.wall_us > 0 ? steady_.rate() : all_.rate();
}

}  // namespace lockstep::coordinator
