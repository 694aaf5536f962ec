// The order of phases in a run, and what a start means to one member. Pure arithmetic, with the
// same result on every member.
//
//   after a step:        eval if one is due (comm/run/evaluation/evaluation_due.h), else
//   after an evaluation: edge if one is due (comm/run/evaluation/edge.h), else
//   after an edge:       checkpoint if the run ended, else train
//   after checkpoint:    end
//
// EDGES. The script's code between two epochs may change the kept state, so a step with an edge has
// two states: one before it and one after it.
//
//  E1 A member begins an edge only when the evaluation before it, if one is due, is in the journal.
//     So no state after an edge is ever evaluated in place of the one before it, and a member that
//     dies takes no evaluation with it that the others' code has seen.
//  E2 Every member that holds the state before an edge runs the edge itself, once, under the gate.
//     No member waits for another one there, and none fetches a state for it.
//  E3 Only the phase of a member's own standing says whether its state is the one after the edge.
//     For a state from a peer or a checkpoint, the phase that came with it says so.
//  E4 Members compare the state after the edge. Where none follows in their generation, because
//     they stop or switch at this step, they compare the state before it.
//
// The run ends after the planned number of steps, or earlier: where train.patience says so, or
// where its script does (coordinator/PROTOCOL.md, "An end by the script").
//
// Thread-safety: values and pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "comm/base/ids.h"
#include "comm/run/evaluation/check_after.h"
#include "comm/run/evaluation/edge.h"
#include "comm/run/evaluation/eval_track.h"
#include "comm/run/evaluation/evaluation_due.h"
#include "comm/run/plan/skip_set.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/resume_point.h"

namespace lockstep {

struct PhasePlan {
  Evaluations evals;
  Step total_steps = 0;  // or where train.patience or the script has ended the run
  BestBy by = BestBy::kLoss;
  uint32_t patience = 0;
  bool keeps_best = false;            // checkpoint.best
  uint64_t checkpoint_every = 0;      // steps; 0: only at the end
  bool has_edges = false;             // the script's loop is over run.epochs()
  std::optional<Step> ended_at = {};  // by the script, before the planned end

  // The script has ended the run after `step` steps. Does nothing if the planned end comes first.
  void end_at(Step step) {
    if (step >= total_steps) return;
    ended_at = step;
    total_steps = step;
  }

  // The evaluations that the state has seen may end a run of `steps` steps earlier.
  void end_with(const EvalTrack& track, Step steps) {
    steps = std::min(steps, ended_at.value_or(steps));
    total_steps = track.is_over(patience) ? std::min(steps, track.last.step) : steps;
  }

  Phase after_step(Step applied) const {
    if (evaluation_due(evals, applied, total_steps)) return Phase::kEval;
    return after_eval(applied);
  }

  // Whether a checkpoint of the state after `applied` steps may follow, however the evaluation
  // comes out. Members compare their weights there (worker/runner/runner.h, U9).
  bool may_be_kept(Step applied) const {
    if (applied == 0) return false;
    const bool is_evaluated = evaluation_due(evals, applied, total_steps);
    return applied >= total_steps || ((keeps_best || patience > 0) && is_evaluated) ||
           is_checkpoint_due(applied);
  }

  // By checkpoint.every_steps.
  bool is_checkpoint_due(Step applied) const {
    return falls_due(checkpoint_every, applied, evals.turns);
  }

  // Where members compare their work because the run, of `steps` steps, may end there.
  PossibleEnds possible_ends(Step steps) const { return {evals, steps, patience > 0}; }

  bool is_evaluated(Step applied) const { return evaluation_due(evals, applied, total_steps); }
  bool has_edge(Step applied) const { return has_edges && edge_due(evals, applied, total_steps); }

  Phase after_eval(Step applied) const {
    return has_edge(applied) ? Phase::kEdge : after_edge(applied);
  }

  Phase after_edge(Step applied) const {
    return applied >= total_steps ? Phase::kCheckpoint : Phase::kTrain;
  }

  // Whether the state at this point is the one after an edge, not the one before it.
  bool is_past_edge(const ResumePoint& at) const {
    return has_edge(at.step) && is_after_edge(at.phase);
  }
};

// The order of phases for this job on these data. With fewer `total_steps` than the job says, its
// script has ended the run there.
PhasePlan make_phase_plan(const wire::JobSpec& job, const wire::DataFacts& facts,
                          uint64_t total_steps, bool has_edges = false);

// Adapts the resume point of a checkpoint to a plan that has become longer or shorter.
ResumePoint fit_to_plan(ResumePoint at, const PhasePlan& plan);

// Where a start resumes for a member that holds its state: `own` is where it stands (E3).
ResumePoint begin_of(const wire::Start& start, const std::optional<ResumePoint>& own,
                     const PhasePlan& plan);

// The evaluations before the state at which a start resumes, for a member that holds it: its own
// `track`, and the evaluation at the resume point if others have made it.
EvalTrack track_at(const wire::Start& start, EvalTrack track, BestBy by);

// The part of a member in a start or in a planned change.
std::optional<uint32_t> rank_of(const wire::Start& start, MemberId member);  // none: not listed
bool holds_state(const wire::Start& start, MemberId member);  // named by source.members
bool joins(const wire::Start& start, MemberId member);        // listed, and gets the state

// The slots that the generation of this start leaves out.
SkipSet skips_of(const wire::Start& start);

// The rank that sends the state to joining members; none: no member needs it from a peer.
std::optional<uint32_t> transfer_root(const wire::Start& start);

}  // namespace lockstep
