// The order of the samples of one epoch: a permutation of [0, samples) in O(1) memory.
//
// A six-round Feistel network over the smallest power of two that holds `samples`, with cycle
// walking: a value outside [0, samples) is permuted again until it falls inside. So a loader can
// start anywhere, and nothing is stored, shuffled or exchanged.
//
// INVARIANTS
//  O1 at() is a permutation of [0, samples) for every seed, epoch and fingerprint.
//  O2 The order is a function of (seed, epoch, fingerprint, samples, kOrderVersion) only. Another
//     algorithm needs another version: the number is part of the key and of a run's identity.
//
// Source: Black, Rogaway: Ciphers with Arbitrary Finite Domains, CT-RSA 2002. Six rounds pass the
// statistics of tests/unit/data/epoch_order_test.cc at every size; two fail them by far.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "comm/base/ids.h"

namespace lockstep::data {

inline constexpr uint64_t kOrderVersion = 1;

// What a name, such as a fingerprint, adds to the key of a stream.
struct NameKey {
  uint64_t low = 0;
  uint64_t high = 0;
};
NameKey name_key(std::string_view name);

// A keyed permutation of [0, size). EpochOrder is this with six rounds; fewer are for tests only.
class FeistelPermutation {
 public:
  static constexpr int kMaxRounds = 6;

  // REQUIRES: 0 < size <= 2^62; rounds even, so that both halves end where they began.
  FeistelPermutation(uint64_t key, uint64_t size, int rounds = kMaxRounds);

  // REQUIRES: x < size.
  uint64_t at(uint64_t x) const;

 private:
  uint64_t permute_once(uint64_t x) const;

  uint64_t size_;
  int rounds_;
  int low_bits_;        // width of the right half, and of the left half after odd rounds
  uint64_t high_mask_;  // of the left half
  uint64_t low_mask_;   // of the right half
  std::array<uint64_t, kMaxRounds> keys_;
};

class EpochOrder {
 public:
  // REQUIRES: 0 < samples <= 2^62.
  EpochOrder(uint64_t seed, Epoch epoch, std::string_view fingerprint, uint64_t samples);

  // The sample at `position` of the epoch. REQUIRES: position < samples.
  uint64_t at(uint64_t position) const { return permutation_.at(position); }

 private:
  FeistelPermutation permutation_;
};

}  // namespace lockstep::data
