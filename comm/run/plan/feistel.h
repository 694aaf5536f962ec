// A keyed permutation of [0, size) in O(1) memory.
//
// A Feistel network of six rounds over the smallest power of two that holds `size`, with cycle
// walking: a value outside [0, size) is permuted again until it falls inside.
//
// Source: Black, Rogaway: Ciphers with Arbitrary Finite Domains, CT-RSA 2002. Six rounds pass the
// statistics of tests/unit/run/plan/epoch_order_test.cc at every size; two fail them by far.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

class FeistelPermutation {
 public:
  static constexpr int kMaxRounds = 6;  // only tests use fewer

  // REQUIRES: 0 < size <= 2^62; `rounds` is even, so both halves end where they began.
  FeistelPermutation(uint64_t key, uint64_t size, int rounds = kMaxRounds);

  // REQUIRES: x < size.
  uint64_t at(uint64_t x) const;
  // The place of x: place_of(at(x)) == x. REQUIRES: x < size.
  uint64_t place_of(uint64_t x) const;

 private:
  uint64_t permute_once(uint64_t x) const;
  uint64_t permute_back(uint64_t x) const;

  uint64_t size_;
  int rounds_;
  int low_bits_;        // width of the right half, and of the left half after odd rounds
  uint64_t high_mask_;  // of the left half
  uint64_t low_mask_;   // of the right half
  std::array<uint64_t, kMaxRounds> keys_;
};

}  // namespace lockstep
