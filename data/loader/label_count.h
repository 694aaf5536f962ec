// How many labels of a step count. All labels of images and of gapless sequences count. For padded
// or packed documents (Sequences) the data set says so, sample by sample. So every
// rank knows the divisor of a step's losses before it computes anything.
//
// Cost: nothing; for documents about 50 ns for every sample of the step, to look into order and
// index.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/base/ids.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/skip_set.h"
#include "comm/run/plan/step_plan.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

class LabelCount {
 public:
  // `dataset` outlives it; `order` is its order.
  LabelCount(const Dataset& dataset, OrderSpec order);

  // Without the samples of skipped slots.
  uint64_t of_step(const StepPlan& plan, Step step, uint32_t slots, const SkipSet& skips);

 private:
  const Dataset& dataset_;
  const std::optional<As<Sequences>> sequences_;
  const OrderSpec spec_;
  std::optional<EpochOrder> order_;  // of order_epoch_
  Epoch order_epoch_ = 0;
};

// The count of a whole data set.
uint64_t all_counted_labels(const Dataset& dataset);

}  // namespace lockstep::data
