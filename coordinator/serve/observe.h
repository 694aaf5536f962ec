// From decisions to logs and metrics. Nothing here changes anything.
//
// Thread-safety: one thread.
#pragma once

#include "comm/base/log.h"
#include "coordinator/decide/decide.h"
#include "coordinator/report/phase_watch.h"
#include "metrics/exporters/coordinator_metrics.h"

namespace lockstep::coordinator {

void write_line(Logger& logger, const LogLine& line);

// Refusals and the like, which leave no other trace.
void log_reason(Logger& logger, Reason reason, const Event& event);

// What a term begins with.
void observe_begin(CoordinatorMetrics& metrics, const State& state);
// What is only looked up when somebody asks.
void observe_state(CoordinatorMetrics& metrics, const State& state, const Options& options);
void observe_ranks(CoordinatorMetrics& metrics, const State& state, const PhaseWatch& phases,
                   int64_t now_ms);
void observe_reason(CoordinatorMetrics& metrics, Reason reason);
void observe_entry(CoordinatorMetrics& metrics, const State& state, const JournalEntry& entry);
void observe_step(CoordinatorMetrics& metrics, const StepEntry& step,
                  uint64_t predictions_per_sample);
void observe_members(CoordinatorMetrics& metrics, const State& state);

}  // namespace lockstep::coordinator
