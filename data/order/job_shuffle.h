// How a job's samples are shuffled, as its keys data.shuffle, data.block_samples and
// data.window_blocks say.
//
// Thread-safety: a pure function.
#pragma once

#include "data/order/block_order.h"

namespace lockstep::data {

// `Keys`: wire::DataSpec, which this library does without.
//
// By length, blocks are of samples that are numbered next to each other because they are about as
// long, so windows would only mix what was brought together.
template <typename Keys>
BlockShuffle block_shuffle(const Keys& data) {
  if (data.shuffle() == "length") return {data.block_samples(), 1};
  if (data.shuffle() != "block") return {};  // of a run from before the key was there: empty
  return {data.block_samples(), data.window_blocks()};
}

}  // namespace lockstep::data
