#include "comm/run/plan/block_order.h"

#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/prng.h"

namespace lockstep {
namespace {

// A permutation of fewer walks long for each value (feistel.cc), so it is kept.
constexpr uint64_t kFewBlocks = 256;

uint64_t blocks_of(uint64_t samples, uint64_t block_samples) {
  return (samples - 1) / block_samples + 1;
}

}  // namespace

BlockOrder::BlockOrder(uint64_t key, uint64_t samples, const BlockShuffle& shuffle)
    : key_(key),
      // Beyond these they mean the same.
      block_samples_(std::min(shuffle.block_samples, samples)),
      blocks_(blocks_of(samples, block_samples_)),
      window_blocks_(std::min(shuffle.window_blocks, blocks_)),
      order_(stream_value(key, 0), blocks_),
      missing_(blocks_ * block_samples_ - samples),
      short_place_(order_.place_of(blocks_ - 1)),
      short_end_((short_place_ + 1) * block_samples_ - missing_) {
  LOCKSTEP_CHECK(window_blocks_ > 0, "windows without blocks");
  if (blocks_ > kFewBlocks) return;
  for (uint64_t place = 0; place < blocks_; ++place) few_.push_back(order_.at(place));
}

uint64_t BlockOrder::block_at(uint64_t place) const {
  return few_.empty() ? order_.at(place) : few_[place];
}

// The first position of the block at that place, blocks in their order one after another.
uint64_t BlockOrder::begin_of(uint64_t place) const {
  return place * block_samples_ - (place > short_place_ ? missing_ : 0);
}

uint64_t BlockOrder::place_holding(uint64_t position) const {
  return (position < short_end_ ? position : position + missing_) / block_samples_;
}

uint64_t BlockOrder::at(uint64_t position) const {
  const uint64_t window = place_holding(position) / window_blocks_;
  const uint64_t begin = begin_of(window * window_blocks_);
  const uint64_t end = begin_of(std::min((window + 1) * window_blocks_, blocks_));
  const FeistelPermutation inside(stream_value(key_, window + 1), end - begin);
  const uint64_t shuffled = begin + inside.at(position - begin);
  const uint64_t place = place_holding(shuffled);
  return block_at(place) * block_samples_ + (shuffled - begin_of(place));
}

}  // namespace lockstep
