#include "comm/run/plan/digest.h"

#include <vector>

#include "comm/base/prng.h"

namespace lockstep {

SampleDigest::SampleDigest(uint64_t dataset, uint64_t pass) : hash_(0) {
  enter(dataset, pass);
  hash_ = mix64(pass_key_);
}

void SampleDigest::enter(uint64_t dataset, uint64_t pass) {
  pass_key_ = stream_key({dataset, pass});
}

void SampleDigest::add(uint64_t position, uint64_t sample) {
  // The running hash goes through a mixer with every sample, so order matters.
  hash_ = mix64(hash_ ^ mix64(position + mix64(sample ^ pass_key_)));
  ++count_;
}

uint64_t SampleDigest::value() const {
  return mix64(hash_ ^ count_);
}

uint64_t delivered_digest(const EpochOrder& order, Epoch epoch, uint64_t begin,
                          std::span<const uint64_t> samples) {
  SampleDigest digest(0, epoch);
  const MixedOrder* const mixed = order.mixed();
  for (uint64_t i = 0; i < samples.size(); ++i) {
    if (mixed == nullptr) {
      digest.add(begin + i, samples[i]);
      continue;
    }
    const Mixture::Unit unit = mixed->unit_at(begin + i);
    digest.enter(unit.set, unit.pass);
    digest.add(unit.position, samples[i]);
  }
  return digest.value();
}

uint64_t planned_digest(const EpochOrder& order, const StepPlan& plan, uint32_t slot,
                        uint32_t slots) {
  const PositionRange range = slot_positions(plan, slot, slots);
  std::vector<uint64_t> samples;
  samples.reserve(range.size());
  for (uint64_t position = range.begin; position < range.end; ++position)
    samples.push_back(order.at(position));
  return delivered_digest(order, plan.epoch, range.begin, samples);
}

}  // namespace lockstep
