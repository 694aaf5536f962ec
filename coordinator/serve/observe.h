// Turns decisions into logs and metrics. It changes no state.
//
// Thread-safety: one thread.
#pragma once

#include "comm/base/log.h"
#include "coordinator/decide/decide.h"
#include "coordinator/report/phase_watch.h"
#include "coordinator/report/step_watch.h"
#include "metrics/exporters/coordinator_metrics.h"

namespace lockstep::coordinator {

void write_line(Logger& logger, const LogLine& line);

// Logs refusals and other outcomes that leave no other trace.
void log_reason(Logger& logger, Reason reason, const Event& event);

// Sets the metrics with which a term begins.
void observe_begin(CoordinatorMetrics& metrics, const State& state);
// Sets the metrics that need an update only before a scrape.
void observe_state(CoordinatorMetrics& metrics, const State& state, const Options& options);
void observe_recent(CoordinatorMetrics& metrics, const Options& options, const StepWatch& steps,
                    const PhaseWatch& phases, int64_t now_ms);
void observe_ranks(CoordinatorMetrics& metrics, const State& state, const PhaseWatch& phases,
                   int64_t now_ms);
void observe_reason(CoordinatorMetrics& metrics, Reason reason);
// `of_tokens`: predicts_tokens() of the job.
void observe_entry(CoordinatorMetrics& metrics, bool of_tokens, const JournalEntry& entry);
void observe_step(CoordinatorMetrics& metrics, const StepEntry& step, const Options& options);
void observe_members(CoordinatorMetrics& metrics, const State& state);

}  // namespace lockstep::coordinator
