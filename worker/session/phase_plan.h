// The order of phases in a run, and what a start means to one member. Pure arithmetic, with the
// same result on every member.
//
//   after a step:        eval if the epoch or the run ended and there is evaluation data,
//                        else checkpoint if the run ended, else train
//   after an evaluation: checkpoint if the run ended, else train
//   after checkpoint:    end
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/resume_point.h"
#include "data/order/skip_set.h"

namespace lockstep {

struct PhasePlan {
  uint64_t steps_per_epoch = 1;  // > 0
  Step total_steps = 0;
  bool has_eval = false;

  bool ends_epoch(Step applied) const { return applied > 0 && applied % steps_per_epoch == 0; }

  Phase after_step(Step applied) const {
    const bool run_ended = applied >= total_steps;
    if (has_eval && (run_ended || ends_epoch(applied))) return Phase::kEval;
    return run_ended ? Phase::kCheckpoint : Phase::kTrain;
  }

  Phase after_eval(Step applied) const {
    return applied >= total_steps ? Phase::kCheckpoint : Phase::kTrain;
  }
};

// The order of phases for this job on these data.
PhasePlan make_phase_plan(const wire::JobSpec& job, const wire::DataFacts& facts,
                          uint64_t total_steps);

// Adapts the resume point of a checkpoint to a plan that has become longer or shorter.
ResumePoint fit_to_plan(ResumePoint at, const PhasePlan& plan);

// The part of a member in a start or in a planned change.
std::optional<uint32_t> rank_of(const wire::Start& start, MemberId member);  // none: not listed
bool holds_state(const wire::Start& start, MemberId member);  // named by source.members
bool joins(const wire::Start& start, MemberId member);        // listed, and gets the state

// The slots that the generation of this start leaves out.
data::SkipSet skips_of(const wire::Start& start);

// The rank that sends the state to joining members; none: no member needs it from a peer.
std::optional<uint32_t> transfer_root(const wire::Start& start);

}  // namespace lockstep
