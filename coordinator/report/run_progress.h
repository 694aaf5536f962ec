// How far a run is and how well it learns, for Kubeflow Trainer (trainer_status/body.h).
// Thread-safety: a pure function.
#pragma once

#include "coordinator/report/run_stats.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"
#include "coordinator/trainer_status/body.h"

namespace lockstep::coordinator {

// Steps count when they are in the journal: no coordinator that takes over knows of fewer.
trainer::RunProgress progress_of(const State& state, const Options& options, const RunStats& stats);

}  // namespace lockstep::coordinator
