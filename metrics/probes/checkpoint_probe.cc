#include "metrics/probes/checkpoint_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace lockstep {

CheckpointProbe::CheckpointProbe(Families& families, const std::string& prefix)
    : complete_(families.counter(prefix + "checkpoints_total", "Checkpoints completed.")),
      failed_(families.counter(prefix + "checkpoint_failures_total",
                               "Checkpoints that could not be written.")),
      bytes_(families.counter(prefix + "checkpoint_bytes_total",
                              "Size of the checkpoints completed.")),
      step_(families.gauge(prefix + "checkpoint_step", "Steps applied in the newest checkpoint.")) {
}

void CheckpointProbe::complete(Step step, uint64_t bytes) {
  complete_.Increment();
  bytes_.Increment(static_cast<double>(bytes));
  newest(step);
}

void CheckpointProbe::newest(Step step) {
  step_.Set(static_cast<double>(step));
}

void CheckpointProbe::failed() {
  failed_.Increment();
}

}  // namespace lockstep
