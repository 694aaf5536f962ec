#include "comm/base/prng.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

TEST(Prng, KeysDependOnTheOrderOfTheirFields) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 50; ++seed)
    for (uint64_t epoch = 0; epoch < 50; ++epoch) keys.insert(stream_key({seed, epoch}));
  EXPECT_EQ(keys.size(), 2500u);
}

TEST(Prng, FoldingUsesBothHalvesOfAKey) {
  EXPECT_NE(fold32(0x0000000100000000ULL), fold32(0));
  EXPECT_NE(fold32(0x0000000000000001ULL), fold32(0));
}

// Written down once: a change of these changes every run's data order and weights.
TEST(Prng, ValuesArePinned) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // splitmix64's first output for seed 0
  EXPECT_EQ(stream_key({1, 2, 3}), 0xedda197b2b41aa45ULL);
  EXPECT_EQ(stream_value(stream_key({1, 2, 3}), 4), 0x32f94ab2f16a878eULL);
}

TEST(Prng, BelowStaysBelowAndReachesAll) {
  Prng prng(3);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(prng.below(7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_LT(*seen.rbegin(), 7u);
}

}  // namespace
}  // namespace lockstep
