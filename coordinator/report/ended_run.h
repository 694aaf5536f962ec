// A run without a living coordinator, read from its files. It gives the same answers as the server
// would.
//
// Thread-safety: a plain value; read_ended_run() is a free function.
#pragma once

#include <cstddef>
#include <string>

#include "comm/base/status.h"
#include "coordinator/report/phase_watch.h"
#include "coordinator/report/report.h"
#include "coordinator/report/run_stats.h"
#include "coordinator/report/timeline.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

struct EndedRun {
  State state;
  Options options;
  RunStats stats;
  PhaseWatch phases;
  StepWatch steps;
  int64_t now_ms = 0;  // at the end, on a clock that runs within steps only
  ReportTimes times;
  Timeline timeline;
  bool is_over = false;  // false: nothing of the run is alive, and it can be resumed

  std::string job() const;
  std::string status(size_t members) const;
  std::string history(size_t points) const;
  std::string events(size_t limit) const;
};

// Only reads. kUsage if a coordinator holds the run, kNoInput if there is no run.
Result<EndedRun> read_ended_run(const std::string& run_dir);

}  // namespace lockstep::coordinator
