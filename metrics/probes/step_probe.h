// Observes the steps that a worker applies.
//
// Thread-safety: applied() on the training thread, refresh() from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/base/clock.h"
#include "comm/base/ids.h"
#include "metrics/base/families.h"
#include "metrics/base/rate_window.h"

namespace lockstep {

struct AppliedStep {
  Step steps_applied = 0;  // including this one
  Epoch epoch = 0;
  uint64_t own_samples = 0;  // computed by this worker
  double seconds = 0;        // wall time of the whole step
  double loss = 0;           // mean over the whole step
  // Share of right predictions in the whole step; none: is not shown.
  std::optional<double> accuracy = {};
  double learning_rate = 0;
  bool skipped = false;  // skipped by the loss scaler
};

class StepProbe {
 public:
  StepProbe(Families& families, const Clock& clock);
  void applied(const AppliedStep& step);
  void refresh();  // call before writing the exposition

 private:
  const Clock& clock_;
  RateWindow samples_;
  prometheus::Gauge& step_;
  prometheus::Gauge& epoch_;
  prometheus::Counter& steps_total_;
  prometheus::Counter& skipped_total_;
  prometheus::Histogram& seconds_;
  prometheus::Counter& samples_total_;
  prometheus::Gauge& samples_per_second_;
  prometheus::Gauge& loss_;
  OptionalGauge accuracy_;
  prometheus::Gauge& learning_rate_;
};

}  // namespace lockstep
