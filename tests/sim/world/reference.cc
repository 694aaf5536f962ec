#include "tests/sim/world/reference.h"

#include <algorithm>

#include "comm/base/prng.h"

namespace lockstep::sim {

ModelState initial_state(uint64_t seed) {
  return {0, stream_key({seed, 1})};
}

uint64_t contribution(const ModelState& from, uint32_t slot, uint32_t bucket, uint32_t element) {
  return stream_key({from.hash, from.step, slot, bucket, element});
}

uint64_t add_slot(uint64_t sum, uint32_t slot, uint64_t contribution) {
  return mix64(sum ^ mix64(contribution + slot));
}

uint64_t hash_of(const std::vector<uint64_t>& sums) {
  uint64_t hash = 1;
  for (const uint64_t sum : sums) hash = mix64(hash ^ sum);
  return hash;
}

ModelState next_state(const ModelState& from, const std::vector<uint64_t>& sums) {
  uint64_t hash = mix64(from.hash);
  for (const uint64_t sum : sums) hash = mix64(hash ^ sum);
  return {from.step + 1, hash};
}

ModelState after_edge(const ModelState& from, uint64_t seen) {
  return {from.step, mix64(from.hash ^ stream_key({from.step, seen, 43}))};
}

void Reference::skip(Generation since, Step step, uint32_t begin, uint32_t end) {
  Chain next{
      std::max(since, chains_.back().since), chains_.back().skips, {initial_state(seed_)}, {}};
  next.skips.add(step, begin, end);
  chains_.push_back(std::move(next));
}

Reference::Chain& Reference::chain_of(Generation generation) {
  size_t newest = chains_.size() - 1;
  while (newest > 0 && generation <= chains_[newest].since) --newest;
  return chains_[newest];
}

const ModelState& Reference::after(Step steps, Generation generation) {
  Chain& chain = chain_of(generation);
  while (chain.states.size() <= steps) append(chain);
  return chain.states[steps];
}

ModelState Reference::after_edge(Step steps, Generation generation) {
  const ModelState& before = after(steps, generation);
  return sim::after_edge(before, seen_at_edge(before, generation));
}

uint64_t Reference::record_of(Step step, Generation generation) {
  Chain& chain = chain_of(generation);
  while (chain.records.size() <= step) append(chain);
  return chain.records[step];
}

void Reference::append(Chain& chain) const {
  ModelState from = chain.states.back();
  const bool has_edge = seen_at_edge && from.step > 0 && from.step % steps_per_epoch(shape_) == 0;
  if (has_edge) from = sim::after_edge(from, seen_at_edge(from, chain.since + 1));
  const StepPlan plan = plan_step(shape_, from.step);
  if (chain.skips.counted_samples(plan, from.step, shape_.slots) == 0) {
    chain.states.push_back({from.step + 1, from.hash});
    chain.records.push_back(hash_of({}));
    return;
  }
  std::vector<uint64_t> sums;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (uint32_t element = 0; element < kElements; ++element) {
      uint64_t sum = 0;
      for (uint32_t slot = 0; slot < shape_.slots; ++slot)
        if (!chain.skips.contains(from.step, slot))
          sum = add_slot(sum, slot, contribution(from, slot, bucket, element));
      sums.push_back(sum);
    }
  }
  chain.states.push_back(next_state(from, sums));
  chain.records.push_back(hash_of(sums));
}

}  // namespace lockstep::sim
