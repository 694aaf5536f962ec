// The order in which a run takes its samples, from its frozen identity, and the digest of every
// slot of every step that follows from this order.
//
// Thread-safety: one thread for an OrderedPlan; the rest are values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/plan/epoch_order.h"
#include "comm/run/plan/step_plan.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

// The part of the frozen identity that fixes the order of the samples.
struct RunOrder {
  OrderSpec spec;
  RunShape shape;
};
// kUsage if no generation ever started. kConfig if another version made the order.
Result<RunOrder> order_of(const std::vector<IdentityEntry>& identity);

// Computes digests of the plan. Keeps the order of the last epoch it computed.
class OrderedPlan {
 public:
  explicit OrderedPlan(RunOrder order) : order_(std::move(order)) {}

  const RunShape& shape() const { return order_.shape; }
  StepPlan step(Step step) const { return plan_step(order_.shape, step); }
  PositionRange positions(const StepPlan& plan, uint32_t slot) const {
    return slot_positions(plan, slot, order_.shape.slots);
  }
  uint64_t digest(const StepPlan& plan, uint32_t slot);

 private:
  RunOrder order_;
  std::optional<EpochOrder> epoch_order_;
  Epoch epoch_ = 0;
};

}  // namespace lockstep::coordinator
