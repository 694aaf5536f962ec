// Which batches a rank reads, in their order, and which samples each batch holds. The loader walks
// one sequence. Every prefetcher walks another sequence, ahead of the loader.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/skip_set.h"
#include "comm/run/plan/step_plan.h"

namespace lockstep {

struct PlannedBatch {
  Step step = 0;
  uint32_t slot = 0;
  Epoch epoch = 0;
  PositionRange range;  // of the epoch; not empty
};

struct BatchSequenceOptions {
  RunShape shape;
  OrderSpec order;
  Step first_step = 0;
  Step end_step = 0;
  SlotRun slots;
  SkipSet skips;
  std::optional<uint32_t> first_slot{};  // of the first step; unset: all of its slots
};

class BatchSequence {
 public:
  explicit BatchSequence(BatchSequenceOptions options);

  // The next batch by (step, slot), over the slots that have samples and are not skipped.
  std::optional<PlannedBatch> next();

  // The order of an epoch's samples. Valid until the caller asks for another epoch.
  const EpochOrder& order_of(Epoch epoch);

 private:
  const BatchSequenceOptions options_;
  Step step_;
  uint32_t slot_;
  std::optional<StepPlan> plan_;  // of step_
  std::optional<EpochOrder> order_;
  Epoch order_epoch_ = 0;
};

// The samples of all batches, one after another.
class SampleSequence {
 public:
  explicit SampleSequence(BatchSequenceOptions options) : batches_(std::move(options)) {}
  std::optional<uint64_t> next();

 private:
  BatchSequence batches_;
  PlannedBatch batch_;  // its range begins at the next sample
};

}  // namespace lockstep
