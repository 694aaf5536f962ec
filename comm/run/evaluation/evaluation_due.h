// After which steps a run evaluates. Workers, the coordinator and a resume ask this one function,
// so none of them waits for an evaluation that another one leaves out.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>

#include "comm/base/ids.h"
#include "comm/run/plan/step_plan.h"

namespace lockstep {

struct Evaluations {
  bool has_data = false;
  uint64_t steps_per_epoch = 1;  // > 0
  uint64_t every_steps = 0;      // 0: none but those at ends
  uint32_t turns = 1;            // of a batch: none is evaluated between two of them
};

// `Job` and `Facts`: wire::JobSpec and wire::DataFacts, which this library does without. A script
// may leave the evaluation data of its job alone, or bring its own: its facts say whether it
// evaluates.
template <typename Job, typename Facts>
Evaluations evaluations_of(const Job& job, const Facts& facts, const RunShape& shape) {
  const bool are_named = job.model().name() != "script" && !job.data().eval().path().empty();
  const bool has_data = are_named || facts.eval_samples() > 0;
  return {has_data, steps_per_epoch(shape), job.eval().every_steps(), shape.turns};
}

// Whether the state after `applied` steps is evaluated: every `every_steps` of the run, at the end
// of every epoch, and at the end of the run, which is after `end` steps.
bool evaluation_due(const Evaluations& when, Step applied, Step end);

}  // namespace lockstep
