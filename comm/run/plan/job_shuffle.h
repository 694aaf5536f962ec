// Tells how a job shuffles its samples, from its keys data.shuffle, data.block_samples and
// data.window_blocks.
//
// Thread-safety: a pure function.
#pragma once

#include "comm/run/plan/block_order.h"

namespace lockstep {

// `Keys`: wire::DataSpec, which this library does without.
//
// With shuffle by length, neighbouring numbers have about the same length, and a block holds
// neighbours. Windows would only mix them again.
template <typename Keys>
BlockShuffle block_shuffle(const Keys& data) {
  if (data.shuffle() == "length") return {data.block_samples(), 1};
  if (data.shuffle() != "block") return {};  // empty in a run that is older than the key
  return {data.block_samples(), data.window_blocks()};
}

}  // namespace lockstep
