// Which positions of which epoch a step owns, and which of them a slot owns: arithmetic, no state.
//
// INVARIANTS
//  P1 Every position of an epoch is in exactly one slot of exactly one step.
//  P2 A step never crosses an epoch; the last step of an epoch owns what is left, however little.
//  P3 Nothing here depends on ranks or on the number of workers.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/base/ids.h"

namespace lockstep {

// The values that fix the plan of a run. REQUIRES everywhere: all three > 0.
struct RunShape {
  uint64_t samples = 0;       // of the training data
  uint64_t global_batch = 0;  // G
  uint32_t slots = 0;         // V
};

uint64_t steps_per_epoch(const RunShape& shape);

struct StepPlan {
  Epoch epoch = 0;
  uint64_t step_in_epoch = 0;
  uint64_t begin = 0;    // first position in the epoch
  uint64_t samples = 0;  // how many positions, never 0
  bool last_of_epoch = false;
};

// `step` counts from the start of the run.
StepPlan plan_step(const RunShape& shape, Step step);

// Positions [begin, end) of the epoch.
struct PositionRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};

// Slot i of a step of n samples owns [begin + floor(i*n/V), begin + floor((i+1)*n/V)).
// REQUIRES: slot < slots.
PositionRange slot_positions(const StepPlan& plan, uint32_t slot, uint32_t slots);

// By slot: true if it owns at least one sample of this step.
std::vector<bool> non_empty_slots(const StepPlan& plan, uint32_t slots);

// The most samples that any slot of any step can own: a batch buffer must hold this many.
uint64_t max_slot_samples(const RunShape& shape);

// Length of the run in steps: `epochs` passes or `max_steps`, whichever is shorter. 0 in one of
// them means that it sets no limit. Both 0: 0. Saturates at 2^64 - 1.
uint64_t total_steps(const RunShape& shape, uint32_t epochs, uint64_t max_steps);

}  // namespace lockstep
