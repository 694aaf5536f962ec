// Computes the undisturbed run: the boundary state after every step.
//
// A state is a hash chain. Every slot's contribution to every element of every bucket is a hash of
// the state it was computed from. An element's sum is a chain over the slots in order. It is the
// same for every owner of the slots, as the reduction tree promises. The next state is a hash of
// the state and of all sums. If a step is left out whole, the state does not change. So one stale,
// torn, doubled, missing or foreign contribution shows in every later state.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/base/ids.h"
#include "comm/run/plan/skip_set.h"

namespace lockstep::sim {

inline constexpr uint32_t kBuckets = 2;
inline constexpr uint32_t kElements = 4;  // of a bucket; slices consist of them

inline constexpr Generation kNewestGeneration = ~Generation{0};

// The state of the weights.
struct ModelState {
  Step step = 0;
  uint64_t hash = 0;
  bool operator==(const ModelState&) const = default;
};

ModelState initial_state(uint64_t seed);

// The contribution of slot `slot` to element `element` of bucket `bucket`, computed from `from`.
uint64_t contribution(const ModelState& from, uint32_t slot, uint32_t bucket, uint32_t element);

// The sum of one element over its slots, in order. Begin with 0.
uint64_t add_slot(uint64_t sum, uint32_t slot, uint64_t contribution);

// The hash of what all ranks receive in a step, as its record has it, without a rank's own weights.
uint64_t hash_of(const std::vector<uint64_t>& sums);

// `sums` by bucket, then element.
ModelState next_state(const ModelState& from, const std::vector<uint64_t>& sums);

// The state that the script's code between two epochs makes of `from`. The code goes by the
// evaluation before it: `seen`, 0 if none is due.
ModelState after_edge(const ModelState& from, uint64_t seen);

// Slots that policy leaves out belong to the run. They hold in every generation newer than the
// newest one that existed when their harm became known.
class Reference {
 public:
  Reference(uint64_t seed, const RunShape& shape) : seed_(seed), shape_(shape) { begin(); }
  void skip(Generation since, Step step, uint32_t begin, uint32_t end);

  // The code between two epochs is told this of the state before it. Empty: there is no such code.
  std::function<uint64_t(const ModelState&, Generation)> seen_at_edge;

  // The state as `generation` computes it; by default the newest one. If an edge follows, before
  // it.
  const ModelState& after(Step steps, Generation generation = kNewestGeneration);
  // REQUIRES: seen_at_edge.
  ModelState after_edge(Step steps, Generation generation = kNewestGeneration);
  // The record's content of a step.
  uint64_t record_of(Step step, Generation generation);
  const SkipSet& skips() const { return chains_.back().skips; }  // of the newest
  const SkipSet& skips_in(Generation generation) { return chain_of(generation).skips; }

 private:
  struct Chain {
    Generation since = 0;  // holds in newer generations
    SkipSet skips;
    std::vector<ModelState> states;
    std::vector<uint64_t> records;  // by step
  };
  void begin() { chains_.push_back({0, {}, {initial_state(seed_)}, {}}); }
  Chain& chain_of(Generation generation);
  void append(Chain& chain) const;

  const uint64_t seed_;
  const RunShape shape_;
  std::vector<Chain> chains_;  // each has one skip more than the one before
};

}  // namespace lockstep::sim
