// How fast the run is and how well it learns, from the steps of the history.
//
// Speed counts only the wall time inside steps, from the writer's measurement, so evaluation and
// checkpoints do not lower it. The steady state leaves out the first steps of a generation, when
// allocators, caches and the prefetcher are cold.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "coordinator/journal/journal_entry.h"
#include "coordinator/report/curves.h"

namespace lockstep::coordinator {

class RunStats {
 public:
  void add(const StepEntry& step);

  // Over the last steps.
  double samples_per_second() const;
  double seconds_per_step() const;
  // Training accuracy; 0 before the first step, nothing if the loss knows no right predictions.
  std::optional<double> correct_per_sample() const;
  double loss() const { return last_.loss; }
  const StepEntry& last() const { return last_; }
  bool is_empty() const { return window_.empty(); }

  // Over the whole run without the first steps, or over all steps if there are no others.
  double steady_samples_per_second() const;
  const Curves& curves() const { return curves_; }
  double step_seconds() const { return static_cast<double>(all_.wall_us) / 1e6; }

 private:
  static constexpr uint32_t kWarmUpSteps = 10;
  static constexpr size_t kWindowSteps = 100;

  struct Sum {
    uint64_t samples = 0;
    uint64_t correct = 0;
    uint64_t wall_us = 0;
    double rate() const {
      return wall_us == 0 ? 0 : static_cast<double>(samples) * 1e6 / static_cast<double>(wall_us);
    }
  };

  uint32_t warm_in_ = kWarmUpSteps;
  StepEntry last_;
  std::deque<StepEntry> window_;
  Sum in_window_;
  Sum steady_;
  Sum all_;
  Curves curves_;
};

}  // namespace lockstep::coordinator
