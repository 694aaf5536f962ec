#include "data/read/label_count.h"

#include <utility>

namespace lockstep::data {

LabelCount::LabelCount(const Dataset& dataset, OrderSpec order)
    : dataset_(dataset), spec_(std::move(order)) {}

uint64_t LabelCount::of_step(const StepPlan& plan, Step step, uint32_t slots,
                             const SkipSet& skips) {
  if (!dataset_.makes_sequences())
    return skips.counted_samples(plan, step, slots) * dataset_.shape().labels();
  if (!order_ || order_epoch_ != plan.epoch) {
    order_.emplace(spec_, plan.epoch);
    order_epoch_ = plan.epoch;
  }
  uint64_t labels = 0;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (skips.contains(step, slot)) continue;
    const PositionRange range = slot_positions(plan, slot, slots);
    for (uint64_t i = range.begin; i < range.end; ++i)
      labels += dataset_.counted_labels(order_->at(i));
  }
  return labels;
}

uint64_t all_counted_labels(const Dataset& dataset) {
  if (!dataset.makes_sequences()) return dataset.samples() * dataset.shape().labels();
  uint64_t labels = 0;
  for (uint64_t i = 0; i < dataset.samples(); ++i) labels += dataset.counted_labels(i);
  return labels;
}

}  // namespace lockstep::data
