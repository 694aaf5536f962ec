// Tells how far a run is and how well it learns, for Kubeflow Trainer (trainer_status/body.h).
// Thread-safety: a pure function.
#pragma once

#include "coordinator/report/run_stats.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"
#include "coordinator/trainer_status/body.h"

namespace lockstep::coordinator {

// Counts the steps in the journal, so that the number never decreases after a take-over.
trainer::RunProgress progress_of(const State& state, const Options& options, const RunStats& stats);

}  // namespace lockstep::coordinator
