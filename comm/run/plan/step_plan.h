// Which positions of which epoch a step owns, and which of them a slot owns: arithmetic, no state.
//
// A batch is a run of positions. A loop with several updates on one batch (phases of a script) has
// U > 1 turns: step s of the ledger is turn s mod U of batch s div U, and owns that batch's
// positions. All other runs have one turn a batch, and there a batch is a step.
//
// INVARIANTS
//  P1 Every position of an epoch is in exactly one slot of exactly one batch, so of its U steps.
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
  uint32_t turns = 1;         // U, at most limits::kTurns
};

uint64_t steps_per_epoch(const RunShape& shape);  // of the ledger: U for each batch

struct StepPlan {
  Epoch epoch = 0;
  uint64_t step_in_epoch = 0;
  uint32_t turn = 0;           // of the batch
  uint64_t begin = 0;          // first position in the epoch
  uint64_t samples = 0;        // how many positions, never 0
  bool last_of_batch = false;  // the batch's last turn
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

// The first step of the batch that `step` is a turn of.
Step first_turn(const RunShape& shape, Step step);

// Whether what happens every `every` steps happens after `applied` steps. It never happens between
// two turns of a batch, so it may come a few steps late. `every` 0: never.
bool falls_due(uint64_t every, Step applied, uint32_t turns);

// Length of the run in steps: `epochs` passes or `max_steps`, whichever is shorter. 0 in one of
// them means that it sets no limit. Both 0: 0. A batch that has begun is finished. Saturates at
// 2^64 - 1.
uint64_t total_steps(const RunShape& shape, uint32_t epochs, uint64_t max_steps);

}  // namespace lockstep
