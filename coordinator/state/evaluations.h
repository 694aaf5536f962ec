// The coordinator's conclusions from evaluations: which checkpoint is the best, and whether the run
// ends before its last step (train.patience).
//
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <vector>

#include "comm/run/evaluation/eval_track.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

using EvalEntries = std::map<Step, EvalEntry>;

EvalMark mark_of(const EvalEntry& eval);

// The track of the evaluations until `step`. Its `kept` is the best one with one of `checkpoints`.
EvalTrack track_until(Step step, const EvalEntries& evals,
                      const std::vector<CheckpointEntry>& checkpoints, const Options& options);

// The number of applied steps after which the run ends, as far as `completed` steps and their
// evaluations tell: by the plan, by its script, or where patience is at its end. An evaluation
// counts once every member has reported the steps before it, because then the evaluations before it
// are known, too.
//
// The generation began after `from` steps, and the run ends at no earlier step: a resume with less
// patience than the run had finds past evaluations that would have ended it long ago.
Step end_step(const EvalEntries& evals, Step completed, Step from, const Options& options,
              const std::optional<ScriptEnd>& end = {});
inline Step end_step(const State& state, const Options& options) {
  return end_step(state.evals, state.completed, state.resume.step, options, state.script_end);
}
// Where the run ends by its plan or its script.
inline Step last_step(const State& state, const Options& options) {
  return last_step(state.script_end, options.total_steps);
}

// The phase after `step` applied steps. Every evaluation before them is known. `is_after_edge`: the
// state is that after the script's code which follows them (comm/run/checkpoint/store.h).
Phase phase_after(Step step, const EvalEntries& evals, const Options& options,
                  const std::optional<ScriptEnd>& end = {}, bool is_after_edge = false);

// The complete checkpoint with the best evaluation among those until `step`; null if none has an
// evaluation. `checkpoints`: ascending by step.
const CheckpointEntry* best_checkpoint(const std::vector<CheckpointEntry>& checkpoints,
                                       const EvalEntries& evals, BestBy by, Step step);

// The complete checkpoint from which a run comes to its best evaluation until `step`: the
// checkpoint of the evaluation itself or, if it was lost with its writer, the newest before it.
// Null if there is none.
const CheckpointEntry* way_to_best(const std::vector<CheckpointEntry>& checkpoints,
                                   const EvalEntries& evals, BestBy by, Step step);

// The best of the evaluations until `step`, or a mark of step 0 if there is none.
EvalMark best_evaluation(const EvalEntries& evals, BestBy by, Step step);

}  // namespace lockstep::coordinator
