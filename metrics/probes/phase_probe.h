// Splits a worker's wall time by its PhaseClock: seconds per phase, the two most wanted phases
// under names of their own, and the share of computing in the last seconds.
//
// Thread-safety: all calls from any thread, but only one refresh() at a time.
#pragma once

#include <array>

#include "comm/base/clock.h"
#include "metrics/base/families.h"
#include "metrics/base/phase_clock.h"
#include "metrics/base/rate_window.h"

namespace lockstep {

class PhaseProbe {
 public:
  // `phases` and `clock` outlive the probe.
  PhaseProbe(Families& families, const PhaseClock& phases, const Clock& clock);
  void sample();   // after every step: a point for the window of the utilization
  void refresh();  // call before writing the exposition

 private:
  const PhaseClock& phases_;
  const Clock& clock_;
  RateWindow useful_;  // seconds of computing, whose rate is a share
  std::array<prometheus::Counter*, kWorkPhases> seconds_{};
  prometheus::Counter& data_wait_;
  prometheus::Counter& communication_;
  prometheus::Gauge& utilization_;
};

}  // namespace lockstep
