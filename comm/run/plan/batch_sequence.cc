#include "comm/run/plan/batch_sequence.h"

#include <utility>

namespace lockstep {

BatchSequence::BatchSequence(BatchSequenceOptions options)
    : options_(std::move(options)),
      step_(options_.first_step),
      slot_(options_.first_slot.value_or(options_.slots.begin)) {}

std::optional<PlannedBatch> BatchSequence::next() {
  for (; step_ < options_.end_step; ++step_, slot_ = options_.slots.begin, plan_.reset()) {
    if (!plan_) plan_ = plan_step(options_.shape, step_);
    while (slot_ < options_.slots.end) {
      const uint32_t slot = slot_++;
      const PositionRange range = slot_positions(*plan_, slot, options_.shape.slots);
      if (range.size() == 0 || options_.skips.contains(step_, slot)) continue;
      return PlannedBatch{step_, slot, plan_->epoch, range};
    }
  }
  return std::nullopt;
}

const EpochOrder& BatchSequence::order_of(Epoch epoch) {
  if (!order_ || order_epoch_ != epoch) {
    order_.emplace(options_.order, epoch);
    order_epoch_ = epoch;
  }
  return *order_;
}

std::optional<uint64_t> SampleSequence::next() {
  if (batch_.range.size() == 0) {
    const auto batch = batches_.next();
    if (!batch) return std::nullopt;
    batch_ = *batch;
  }
  return batches_.order_of(batch_.epoch).at(batch_.range.begin++);
}

}  // namespace lockstep
