// The exporters after a life in which everything happened that they observe.
#pragma once

#include <string>

#include "comm/base/build_info.h"
#include "comm/base/clock.h"
#include "metrics/exporters/agent_metrics.h"
#include "metrics/exporters/coordinator_metrics.h"
#include "metrics/exporters/worker_metrics.h"

namespace lockstep::test {

class HandClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return now_ns; }
  int64_t wall_ms() const override { return 0; }
  int64_t now_ns = 1'000'000'000;
};

struct BusyWorker {
  HandClock clock;
  PhaseClock phases{clock};
  WorkerMetrics metrics{{.run = "r1", .node = "n1", .local_rank = 1}, build_info(), phases, clock};

  // `steps` of 100 samples, each 10 ms: 1 data wait, 3 forward, 4 backward, 1 communication,
  // 1 optimizer.
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      spend(WorkPhase::kDataWait, 1);
      spend(WorkPhase::kForward, 3);
      spend(WorkPhase::kBackward, 4);
      spend(WorkPhase::kCommunication, 1);
      metrics.reduction().reduced(4'096);
      spend(WorkPhase::kOptimizer, 1);
      metrics.step_applied({.steps_applied = ++applied,
                            .epoch = 0,
                            .own_samples = 100,
                            .seconds = 0.010,
                            .loss = 0.5,
                            .accuracy = 0.75,
                            .learning_rate = 1e-3});
    }
  }

  void spend(WorkPhase phase, int64_t ms) {
    phases.switch_to(phase);
    clock.now_ns += ms * 1'000'000;
  }

  Step applied = 0;
};

inline void everything_happens(BusyWorker& worker) {
  worker.metrics.member().started(1, 7, 1, 2);
  worker.train(10);
  worker.metrics.step_applied(
      {.steps_applied = ++worker.applied, .accuracy = 0.75, .skipped = true});
  worker.metrics.eval().evaluated({0.25, 0.9});
  worker.metrics.checkpoint().complete(10, 1'000);
  worker.metrics.checkpoint().failed();
  worker.metrics.member().started(2, 7, 0, 1);
  worker.metrics.tls().expires_in(3'600);
  worker.metrics.data().show({"mmap", 10, 300});
  worker.metrics.data().show({"pread", 20, 100});
  worker.metrics.far_data().watch([] { return FarDataCounts{90, 10, 1'000, 0.5, 800}; });
}

inline void everything_happens(CoordinatorMetrics& metrics) {
  metrics.membership().term_began(1);
  metrics.membership().members({{"registered", 2}});
  metrics.membership().generation_started(1);
  metrics.membership().members({{"active", 2}});
  metrics.membership().evicted("lease_expired");
  metrics.job().step_recorded({.steps_applied = 1,
                               .epoch = 0,
                               .samples = 128,
                               .seconds = 0.01,
                               .loss = 0.5,
                               .accuracy = 0.75,
                               .learning_rate = 1e-3,
                               .metrics = {{"hit", 0.5}}});
  metrics.job().rank_times_recorded({.data_wait = 1,
                                     .forward = 3,
                                     .backward = 4,
                                     .communication = 1,
                                     .optimizer = 1,
                                     .other = 0});
  metrics.job().set_goodput(0.9);
  MetricLabels settings;
  for (const char* label : {"model", "optimizer", "schedule", "precision", "numerics",
                            "data_format", "global_batch", "slots", "epochs", "max_steps"})
    settings[label] = "x";
  metrics.job().settings(settings);
  for (const size_t span : {0, 1})
    metrics.job().lately(span, {.samples_per_second = 500, .loss = 0.6, .utilization = 0.8});
  metrics.journal().batch_received(1);
  metrics.journal().committed(0.002, 3);
  metrics.eval().evaluated({0.25, 0.9, 0.99, true, {{"hit", 0.5}}});
  metrics.checkpoint().complete(1, 1'000);
  metrics.check().agreed();
  metrics.ranks().show({{.rank = 0,
                         .node = "n1",
                         .local_rank = 0,
                         .ten_seconds = {.slot_seconds = 0.01, .data_wait_ratio = 0.1},
                         .minute = {.slot_seconds = 0.02, .data_wait_ratio = 0.2},
                         .silence_seconds = 1}});
  metrics.tls().expires_in(3'600);
}

}  // namespace lockstep::test
