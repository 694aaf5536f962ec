// A permutation of [0, samples) that keeps neighbouring samples together. It is for large files on
// slow storage, where reading single samples at random places costs more than the samples' bytes.
//
//   blocks of B samples ──▶ in a random order ──▶ windows of W blocks ──▶ samples at random in each
//
// The last block of the data may be shorter; then the window with this block is shorter too.
//
// INVARIANTS
//  B1 at() is a permutation of [0, samples) for every key and every B and W > 0.
//  B2 An epoch reads W blocks at a time, and each block once, for any number of samples.
//  B3 O(1) memory, and O(1) time to find any position.
//
// From W = 256 on, data sorted by label give batches nearly as varied as single samples do.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/run/plan/feistel.h"

namespace lockstep {

// How an epoch is shuffled. Without a block size, it shuffles single samples.
struct BlockShuffle {
  uint64_t block_samples = 0;  // B
  uint64_t window_blocks = 0;  // W; > 0 if B is
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
  std::vector<uint64_t> few_;  // the same order as a table, for few blocks
  uint64_t missing_;           // samples that the last block lacks
  uint64_t short_place_;       // place of the last block in the order
  uint64_t short_end_;         // first position after the last block
};

}  // namespace lockstep
