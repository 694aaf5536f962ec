// The order in which a run takes its samples, from its frozen identity, and the digest of every
// slot of every step that follows from this order.
//
// Thread-safety: one thread for an OrderedPlan; the rest are values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"
#include "data/order/epoch_order.h"
#include "data/order/step_plan.h"

namespace lockstep::coordinator {

// The part of the frozen identity that fixes the order of the samples.
struct RunOrder {
  data::OrderSpec spec;
  data::RunShape shape;
};
// kUsage if no generation ever started. kConfig if another version made the order.
Result<RunOrder> order_of(const std::vector<IdentityEntry>& identity);

// Computes digests of the plan. Keeps the order of the last epoch it computed.
class OrderedPlan {
 public:
  explicit OrderedPlan(RunOrder order) : order_(std::move(order)) {}

  const data::RunShape& shape() const { return order_.shape; }
  data::StepPlan step(Step step) const { return data::plan_step(order_.shape, step); }
  data::PositionRange positions(const data::StepPlan& plan, uint32_t slot) const {
    return data::slot_positions(plan, slot, order_.shape.slots);
  }
  uint64_t digest(const data::StepPlan& plan, uint32_t slot);

 private:
  RunOrder order_;
  std::optional<data::EpochOrder> epoch_order_;
  Epoch epoch_ = 0;
};

}  // namespace lockstep::coordinator
