// A permutation of [0, samples) that takes one class after another, and shuffles each class by
// itself. It makes a curriculum if samples are numbered by difficulty, such as their length.
//
//   class c of K holds positions, and samples, [c N / K, (c + 1) N / K), rounded down
//
// INVARIANTS
//  C1 at() is a permutation of [0, samples) for every key and every K > 0.
//  C2 at(position) is in the class of the position.
//  C3 O(K) memory, and O(1) time to find any position.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/run/plan/feistel.h"

namespace lockstep {

class ClassOrder {
 public:
  // More classes than samples count as one class for each sample. REQUIRES: 0 < samples <= 2^62;
  // classes > 0.
  ClassOrder(uint64_t key, uint64_t samples, uint32_t classes);

  // REQUIRES: position < samples.
  uint64_t at(uint64_t position) const;

 private:
  struct Class {
    uint64_t begin = 0;
    FeistelPermutation inside;
  };
  uint64_t samples_;
  std::vector<Class> classes_;
};

}  // namespace lockstep
