#include "data/read/look_ahead.h"

#include "data/order/step_plan.h"

namespace lockstep::data {

void LookAhead::go_on() {
  if (dataset_.far() == nullptr) return;
  while (!is_at_end() && ahead_bytes_ < dataset_.far()->ahead_bytes()) announce_one();
}

void LookAhead::has_used_one() {
  if (ahead_.empty()) return;
  ahead_bytes_ -= ahead_.front();
  ahead_.pop_front();
}

void LookAhead::announce_one() {
  const StepPlan plan = plan_step(options_.shape, step_);
  const PositionRange range = slot_positions(plan, slot_, options_.shape.slots);
  if (range.size() > 0 && !options_.skips.contains(step_, slot_)) {
    if (order_epoch_ != plan.epoch) {
      order_.emplace(options_.order, plan.epoch);
      order_epoch_ = plan.epoch;
    }
    uint64_t bytes = 0;
    for (uint64_t position = range.begin; position < range.end; ++position)
      bytes += dataset_.announce(order_->at(position));
    ahead_.push_back(bytes);
    ahead_bytes_ += bytes;
  }
  if (++slot_ < options_.slots.end) return;
  slot_ = options_.slots.begin;
  ++step_;
}

}  // namespace lockstep::data
