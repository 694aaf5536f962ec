// A permutation of [0, samples) that keeps together what lies together: for large files on slow
// storage, where single samples at random places cost more than they hold.
//
//   blocks of B samples ──▶ in a random order ──▶ windows of W blocks ──▶ samples at random in each
//
// The last block of the data may be shorter; so is then the window into which it falls.
//
// INVARIANTS
//  B1 at() is a permutation of [0, samples) for every key and every B and W > 0.
//  B2 W blocks at a time are read, each once an epoch, whatever the number of samples.
//  B3 O(1) memory, and any position is found at once.
//
// Data sorted by label give batches nearly as varied as single samples do from W = 256 on.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "data/order/feistel.h"

namespace lockstep::data {

// How an epoch is shuffled: single samples where there is no size of a block.
struct BlockShuffle {
  uint64_t block_samples = 0;  // B
  uint64_t window_blocks = 0;  // W; > 0 where B is
  bool is_on() const { return block_samples > 0; }
  bool operator==(const BlockShuffle&) const = default;
};

class BlockOrder {
 public:
  // REQUIRES: 0 < samples <= 2^62; shuffle.is_on().
  BlockOrder(uint64_t key, uint64_t samples, const BlockShuffle& shuffle);

  // REQUIRES: position < samples.
  uint64_t at(uint64_t position) const;

 private:
  uint64_t block_at(uint64_t place) const;
  uint64_t begin_of(uint64_t place) const;
  uint64_t place_holding(uint64_t position) const;

  uint64_t key_;
  uint64_t block_samples_;
  uint64_t blocks_;
  uint64_t window_blocks_;
  FeistelPermutation order_;   // of the blocks
  std::vector<uint64_t> few_;  // the same, where it is short
  uint64_t missing_;           // of the last block
  uint64_t short_place_;       // where it comes
  uint64_t short_end_;         // and the first position behind it
};

}  // namespace lockstep::data
