// Records the training thread's activity in metrics, and its step in the log.
// Thread-safety: as RunnerProbe.
#pragma once

#include "metrics/base/phase_clock.h"
#include "metrics/exporters/worker_metrics.h"
#include "worker/process/log_place.h"
#include "worker/runner/runner_probe.h"

namespace lockstep {

class MetricsProbe final : public RunnerProbe {
 public:
  // `metrics`, `phases` and `place` outlive the probe.
  MetricsProbe(WorkerMetrics& metrics, PhaseClock& phases, uint64_t predictions_per_sample,
               LogPlace& place)
      : metrics_(metrics),
        phases_(phases),
        predictions_per_sample_(predictions_per_sample),
        place_(place) {}

  void doing(Activity activity) override;
  void generation_started(Generation generation, MemberId member, const MemberPart& part) override;
  void step_applied(const wire::StepRecord& record,
                    std::span<const uint64_t> bucket_bounds) override;
  void evaluated(const wire::EvalReport& report) override;
  void checkpoint_written(const wire::CheckpointReport& report) override;

 private:
  WorkerMetrics& metrics_;
  PhaseClock& phases_;
  const uint64_t predictions_per_sample_;
  LogPlace& place_;
  SlotRun own_slots_;
};

}  // namespace lockstep
