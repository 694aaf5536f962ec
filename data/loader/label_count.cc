#include "data/loader/label_count.h"

#include <utility>

namespace lockstep::data {
namespace {

uint64_t counted_labels(const As<Sequences>& sequences, uint64_t i) {
  const auto [from, number] = sequences.at(i);
  return from.counted_labels(number);
}

}  // namespace

LabelCount::LabelCount(const Dataset& dataset, OrderSpec order)
    : dataset_(dataset), sequences_(dataset.as<Sequences>()), spec_(std::move(order)) {}

uint64_t LabelCount::of_step(const StepPlan& plan, Step step, uint32_t slots,
                             const SkipSet& skips) {
  if (!sequences_) return skips.counted_samples(plan, step, slots) * dataset_.shape().labels();
  if (!order_ || order_epoch_ != plan.epoch) {
    order_.emplace(spec_, plan.epoch);
    order_epoch_ = plan.epoch;
  }
  uint64_t labels = 0;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (skips.contains(step, slot)) continue;
    const PositionRange range = slot_positions(plan, slot, slots);
    for (uint64_t i = range.begin; i < range.end; ++i)
      labels += counted_labels(*sequences_, order_->at(i));
  }
  return labels;
}

uint64_t all_counted_labels(const Dataset& dataset) {
  const auto sequences = dataset.as<Sequences>();
  if (!sequences) return dataset.samples() * dataset.shape().labels();
  uint64_t labels = 0;
  for (uint64_t i = 0; i < dataset.samples(); ++i) labels += counted_labels(*sequences, i);
  return labels;
}

}  // namespace lockstep::data
