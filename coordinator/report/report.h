// The coordinator's reports about a run to people and tools, as JSON: /api/v1/status, /sd and
// summary.json.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "coordinator/report/phase_watch.h"
#include "coordinator/report/run_stats.h"
#include "coordinator/report/step_watch.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

struct ReportTimes {
  double wall_seconds = 0;
  double goodput = 0;
};

struct StatusDetail {
  PhaseWatch phases;
  StepWatch steps;
  int64_t now_ms = 0;                                   // of the clock of the two
  size_t members = std::numeric_limits<size_t>::max();  // that are listed at most, by rank
};

std::string status_json(const State& state, const Options& options, const RunStats& stats,
                        const ReportTimes& times, const StatusDetail& detail = {});

// Prometheus' HTTP service discovery: the address of the coordinator itself, of one agent of each
// node, and of every worker.
std::string discovery_json(const State& state, const std::string& own_address, bool is_https);

// Does this text tell the end that `state` tells?
bool is_summary_of(const std::string& text, const State& state);

std::string summary_json(const State& state, const Options& options, const RunStats& stats,
                         const ReportTimes& times);

}  // namespace lockstep::coordinator
