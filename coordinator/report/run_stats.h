// Computes how fast the run is and how well it learns, from the steps of the history.
//
// Speed counts only the wall time inside steps, from the writer's measurement, so evaluation and
// checkpoints do not lower it. The steady state: StepTotals.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "coordinator/journal/step_piece.h"
#include "coordinator/report/curves.h"

namespace lockstep::coordinator {

class RunStats {
 public:
  // Begins as if all steps of `pieces` were added, except for the values over the last steps: for
  // these, add more than a window. REQUIRES: nothing was added before.
  void begin(const std::vector<StepPiece>& pieces);
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
  // Time in steps, for the goodput (StepTotals::useful_us).
  double useful_seconds() const { return static_cast<double>(totals_.useful_us) / 1e6; }

 private:
  static constexpr size_t kWindowSteps = 100;

  StepEntry last_;
  std::deque<StepEntry> window_;
  StepTally in_window_;
  StepTotals totals_;
  Curves curves_;
};

}  // namespace lockstep::coordinator
