#include "tests/sim/reference.h"

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

ModelState next_state(const ModelState& from, const std::vector<uint64_t>& sums) {
  uint64_t hash = mix64(from.hash);
  for (const uint64_t sum : sums) hash = mix64(hash ^ sum);
  return {from.step + 1, hash};
}

const ModelState& Reference::after(Step steps) {
  while (states_.size() <= steps) {
    const ModelState from = states_.back();
    std::vector<uint64_t> sums;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      for (uint32_t element = 0; element < kElements; ++element) {
        uint64_t sum = 0;
        for (uint32_t slot = 0; slot < slots_; ++slot)
          sum = add_slot(sum, slot, contribution(from, slot, bucket, element));
        sums.push_back(sum);
      }
    }
    states_.push_back(next_state(from, sums));
  }
  return states_[steps];
}

}  // namespace lockstep::sim
