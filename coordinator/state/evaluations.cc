#include "coordinator/state/evaluations.h"

#include <algorithm>

namespace lockstep::coordinator {

EvalMark mark_of(const EvalEntry& eval) {
  return {eval.step, eval.loss, eval.correct, eval.samples};
}

EvalTrack track_until(Step step, const EvalEntries& evals,
                      const std::vector<CheckpointEntry>& checkpoints, const Options& options) {
  const BestBy by = best_by(options.job.checkpoint().best());
  EvalTrack track;
  for (const auto& [applied, eval] : evals) {
    if (applied <= step) track.add(mark_of(eval), by);
  }
  if (const auto* kept = best_checkpoint(checkpoints, evals, by, step)) {
    track.kept = mark_of(evals.at(kept->step));
  }
  return track;
}

Step end_step(const EvalEntries& evals, Step completed, Step from, const Options& options,
              const std::optional<ScriptEnd>& end) {
  const Step last = last_step(end, options.total_steps);
  const uint32_t patience = options.job.train().patience();
  const BestBy by = best_by(options.job.checkpoint().best());
  EvalTrack track;
  for (const auto& [applied, eval] : evals) {
    if (applied > completed || (applied > from && track.is_over(patience))) break;
    track.add(mark_of(eval), by);
  }
  if (!track.is_over(patience)) return last;
  return std::min(std::max(track.last.step, from), last);
}

Phase phase_after(Step step, const EvalEntries& evals, const Options& options,
                  const std::optional<ScriptEnd>& end, bool is_after_edge) {
  if (!is_after_edge && !evals.contains(step) && is_evaluated_after(step, options, end))
    return Phase::kEval;
  const Step last = end_step(evals, step, step, options, end);
  if (!is_after_edge && has_edge_after(step, last, options)) return Phase::kEdge;
  return step >= last ? Phase::kEnd : Phase::kTrain;
}

const CheckpointEntry* best_checkpoint(const std::vector<CheckpointEntry>& checkpoints,
                                       const EvalEntries& evals, BestBy by, Step step) {
  const CheckpointEntry* best = nullptr;
  EvalMark best_mark;
  for (const CheckpointEntry& entry : checkpoints) {
    const auto eval = evals.find(entry.step);
    if (entry.step > step || entry.state != CheckpointState::kComplete || eval == evals.end())
      continue;
    const EvalMark mark = mark_of(eval->second);
    if (!is_better(mark, best_mark, by)) continue;
    best = &entry;
    best_mark = mark;
  }
  return best;
}

EvalMark best_evaluation(const EvalEntries& evals, BestBy by, Step step) {
  EvalTrack track;
  for (const auto& [applied, eval] : evals) {
    if (applied <= step) track.add(mark_of(eval), by);
  }
  return track.best;
}

const CheckpointEntry* way_to_best(const std::vector<CheckpointEntry>& checkpoints,
                                   const EvalEntries& evals, BestBy by, Step step) {
  const Step best = best_evaluation(evals, by, step).step;
  const CheckpointEntry* newest = nullptr;
  for (const CheckpointEntry& entry : checkpoints) {
    if (entry.step <= best && entry.state == CheckpointState::kComplete) newest = &entry;
  }
  return newest;
}

}  // namespace lockstep::coordinator
