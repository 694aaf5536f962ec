// Chains the digests of many slots into one number (digest.h), in the order of steps and slots. A
// block of steps proves itself with that number when its records are gone: the journal's folds
// (coordinator/serve/fold.h) and the proof in a checkpoint (comm/run/checkpoint/step_proof.h)
// have the same blocks and the same numbers.
//
// Thread-safety: a value; one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "comm/base/ids.h"
#include "comm/base/limits.h"
#include "comm/base/prng.h"

namespace lockstep {

class FoldDigest {
 public:
  FoldDigest() = default;
  // Goes on where another one was.
  FoldDigest(uint64_t value, uint64_t samples) : hash_(value), samples_(samples) {}

  void add(Step step, uint32_t slot, uint64_t digest, uint64_t samples) {
    hash_ = mix64(hash_ ^ mix64(digest + mix64(step ^ mix64((uint64_t{slot} << 32) ^ samples))));
    samples_ += samples;
  }
  uint64_t value() const { return hash_; }
  uint64_t samples() const { return samples_; }

 private:
  uint64_t hash_ = 0;
  uint64_t samples_ = 0;
};

// How many steps a block has: fewer with many slots, so that no commit is long. Block n begins at
// step n times this number.
inline Step fold_block_steps(uint32_t slots) {
  constexpr Step kBlockSteps = 1'000;
  constexpr Step kBlockDigests = 100'000;
  return std::clamp<Step>(kBlockDigests / slots, limits::kRecordBatchSteps, kBlockSteps);
}

}  // namespace lockstep
