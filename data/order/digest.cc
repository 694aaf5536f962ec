#include "data/order/digest.h"

#include "comm/base/prng.h"

namespace lockstep::data {

SampleDigest::SampleDigest(uint64_t dataset, Epoch pass)
    : pass_key_(stream_key({dataset, pass})), hash_(mix64(pass_key_)) {}

void SampleDigest::add(uint64_t position, uint64_t sample) {
  // The running hash goes through a mixer with every sample, so order matters.
  hash_ = mix64(hash_ ^ mix64(position + mix64(sample ^ pass_key_)));
  ++count_;
}

uint64_t SampleDigest::value() const {
  return mix64(hash_ ^ count_);
}

uint64_t planned_digest(const EpochOrder& order, const StepPlan& plan, uint32_t slot,
                        uint32_t slots) {
  SampleDigest digest(0, plan.epoch);
  const PositionRange range = slot_positions(plan, slot, slots);
  for (uint64_t position = range.begin; position < range.end; ++position)
    digest.add(position, order.at(position));
  return digest.value();
}

}  // namespace lockstep::data
