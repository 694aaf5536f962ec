// The run that nobody disturbs, as arithmetic: what the boundary state is after every step.
//
// A state is a hash chain. Every slot's contribution to every element of every bucket is a hash of
// the state it was computed from; an element's sum is a chain over the slots in order, which is the
// same whoever holds which slots, as the reduction tree promises; the next state is a hash of the
// state and of all sums. So one stale, torn, doubled, missing or foreign contribution shows in every
// later state.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/base/ids.h"

namespace lockstep::sim {

inline constexpr uint32_t kBuckets = 2;
inline constexpr uint32_t kElements = 4;  // of a bucket; slices are made of them

// What the weights are.
struct ModelState {
  Step step = 0;
  uint64_t hash = 0;
  bool operator==(const ModelState&) const = default;
};

ModelState initial_state(uint64_t seed);

// Of slot `slot` to element `element` of bucket `bucket`, computed from `from`.
uint64_t contribution(const ModelState& from, uint32_t slot, uint32_t bucket, uint32_t element);

// The sum of one element over its slots, in order: begin with 0.
uint64_t add_slot(uint64_t sum, uint32_t slot, uint64_t contribution);

// `sums` by bucket, then element.
ModelState next_state(const ModelState& from, const std::vector<uint64_t>& sums);

class Reference {
 public:
  Reference(uint64_t seed, uint32_t slots) : slots_(slots) { states_.push_back(initial_state(seed)); }
  const ModelState& after(Step steps);

 private:
  uint32_t slots_;
  std::vector<ModelState> states_;
};

}  // namespace lockstep::sim
