#include "metrics/probes/phase_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <string>

namespace lockstep {
namespace {

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

}  // namespace

PhaseProbe::PhaseProbe(Families& families, const PhaseClock& phases, const Clock& clock)
    : phases_(phases),
      clock_(clock),
      data_wait_(families.counter("lockstep_data_wait_seconds_total",
                                  "Time the training thread waited for the next batch.")),
      communication_(families.counter(
          "lockstep_communication_seconds_total",
          "Time the training thread waited for reduced gradients (not hidden by backward).")),
      utilization_(families.gauge("lockstep_utilization_ratio",
                                  "Share of wall time spent in forward, backward and optimizer, "
                                  "lately.")) {
  sample();
  for (size_t i = 0; i < kWorkPhases; ++i) {
    seconds_[i] = &families.counter(
        "lockstep_phase_seconds_total", "Wall time of the training thread; phases add up to it.",
        {{"phase", std::string(phase_name(static_cast<WorkPhase>(i)))}});
  }
}

void PhaseProbe::sample() {
  useful_.update(clock_.monotonic_ns(), seconds(phases_.snapshot().useful()));
}

void PhaseProbe::refresh() {
  const PhaseTotals totals = phases_.snapshot();
  for (size_t i = 0; i < kWorkPhases; ++i) raise_to(*seconds_[i], seconds(totals.ns[i]));
  raise_to(data_wait_, seconds(totals.of(WorkPhase::kDataWait)));
  raise_to(communication_, seconds(totals.of(WorkPhase::kCommunication)));
  const int64_t now_ns = clock_.monotonic_ns();
  useful_.update(now_ns, seconds(totals.useful()));
  utilization_.Set(useful_.per_second(now_ns));
}

}  // namespace lockstep
