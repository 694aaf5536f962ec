#include "comm/run/plan/feistel.h"

#include <algorithm>
#include <bit>

#include "comm/base/check.h"
#include "comm/base/prng.h"

namespace lockstep {
namespace {

// Tiny sets are walked inside a larger domain: a network on two or three bits can only reach a few
// of the permutations, and not evenly.
constexpr int kMinDomainBits = 8;

// The round function: two multiplications mix every bit of the half into every bit of the result.
uint64_t round_value(uint64_t half, uint64_t key) {
  uint64_t z = (half ^ key) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93ULL;
  return z >> 32;
}

}  // namespace

FeistelPermutation::FeistelPermutation(uint64_t key, uint64_t size, int rounds)
    : size_(size), rounds_(rounds) {
  LOCKSTEP_CHECK(size > 0 && size <= uint64_t{1} << 62, "size of a permutation");
  LOCKSTEP_CHECK(rounds > 0 && rounds <= kMaxRounds && rounds % 2 == 0, "rounds of a permutation");
  const int bits = std::max(kMinDomainBits, static_cast<int>(std::bit_width(size - 1)));
  low_bits_ = (bits + 1) / 2;
  low_mask_ = (uint64_t{1} << low_bits_) - 1;
  high_mask_ = (uint64_t{1} << (bits - low_bits_)) - 1;
  for (uint64_t i = 0; i < keys_.size(); ++i) keys_[i] = stream_value(key, i);
}

uint64_t FeistelPermutation::permute_once(uint64_t x) const {
  uint64_t high = x >> low_bits_;
  uint64_t low = x & low_mask_;
  // Two rounds at a time: each half is changed in place, so that widths may differ by one bit.
  for (int round = 0; round < rounds_; round += 2) {
    high ^= round_value(low, keys_[static_cast<size_t>(round)]) & high_mask_;
    low ^= round_value(high, keys_[static_cast<size_t>(round) + 1]) & low_mask_;
  }
  return high << low_bits_ | low;
}

// The same rounds, last first: each undoes itself.
uint64_t FeistelPermutation::permute_back(uint64_t x) const {
  uint64_t high = x >> low_bits_;
  uint64_t low = x & low_mask_;
  for (int round = rounds_ - 2; round >= 0; round -= 2) {
    low ^= round_value(high, keys_[static_cast<size_t>(round) + 1]) & low_mask_;
    high ^= round_value(low, keys_[static_cast<size_t>(round)]) & high_mask_;
  }
  return high << low_bits_ | low;
}

uint64_t FeistelPermutation::at(uint64_t x) const {
  LOCKSTEP_CHECK(x < size_, "position beyond the end of a permutation");
  // Ends: the orbit of x is a cycle that contains x itself, which is inside.
  do {
    x = permute_once(x);
  } while (x >= size_);
  return x;
}

uint64_t FeistelPermutation::place_of(uint64_t x) const {
  LOCKSTEP_CHECK(x < size_, "value beyond the end of a permutation");
  do {
    x = permute_back(x);
  } while (x >= size_);
  return x;
}

}  // namespace lockstep
