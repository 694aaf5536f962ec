// How many labels of a step count. Of images and of sequences without a gap all do; of documents
// that are padded or packed (Dataset::makes_sequences()) what their data set says, sample by
// sample. So every rank knows by what the losses of a step are divided before anything is computed.
//
// Cost: nothing, or for documents one look into the order and the index for every sample of the
// step, some 50 ns each.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/base/ids.h"
#include "data/dataset/dataset.h"
#include "data/order/epoch_order.h"
#include "data/order/skip_set.h"
#include "data/order/step_plan.h"

namespace lockstep::data {

class LabelCount {
 public:
  // `dataset` outlives it; `order` is of the same.
  LabelCount(const Dataset& dataset, OrderSpec order);

  // Of the samples in slots that are not skipped.
  uint64_t of_step(const StepPlan& plan, Step step, uint32_t slots, const SkipSet& skips);

 private:
  const Dataset& dataset_;
  const OrderSpec spec_;
  std::optional<EpochOrder> order_;  // of order_epoch_
  Epoch order_epoch_ = 0;
};

// Of a whole data set.
uint64_t all_counted_labels(const Dataset& dataset);

}  // namespace lockstep::data
