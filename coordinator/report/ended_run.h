// A run without a living coordinator, as its files tell it: what the server would answer if it were
// still there.
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
  ReportTimes times;
  Timeline timeline;
  bool is_over = false;  // else nothing of it is alive, and it can be resumed

  std::string status(size_t members) const;
  std::string history(size_t points) const;
  std::string events(size_t limit) const;
};

// Reads only. kUsage when a coordinator holds the run, kNoInput when there is none.
Result<EndedRun> read_ended_run(const std::string& run_dir);

}  // namespace lockstep::coordinator
