#include "comm/run/plan/block_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "comm/base/prng.h"
#include "comm/run/plan/epoch_order.h"

namespace lockstep::data {
namespace {

// Chi-square over `counts` as a standard normal deviate (Wilson, Hilferty 1931).
double z_of(const std::vector<double>& counts) {
  double total = 0;
  for (const double count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  double chi2 = 0;
  for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
  const double df = static_cast<double>(counts.size()) - 1;
  return (std::cbrt(chi2 / df) - (1 - 2 / (9 * df))) / std::sqrt(2 / (9 * df));
}

RC_GTEST_PROP(BlockOrder, IsAPermutationOfAnySize, (uint64_t key)) {
  const auto n = *rc::gen::inRange<uint64_t>(1, 5'000);
  const auto block = *rc::gen::inRange<uint64_t>(1, 600);
  const auto window = *rc::gen::inRange<uint64_t>(1, 40);
  const BlockOrder order(key, n, {block, window});
  std::vector<bool> seen(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t sample = order.at(i);
    RC_ASSERT(sample < n);
    RC_ASSERT(!seen[sample]);
    seen[sample] = true;
  }
}

// Every window reads only so many blocks in its stretch of positions, and no two windows share one.
RC_GTEST_PROP(BlockOrder, ReadsEachBlockInOneWindowOnly, (uint64_t key)) {
  const auto n = *rc::gen::inRange<uint64_t>(1, 5'000);
  const auto block = *rc::gen::inRange<uint64_t>(1, 100);
  const auto window = *rc::gen::inRange<uint64_t>(1, 40);
  const BlockOrder order(key, n, {block, window});
  std::set<uint64_t> before;
  for (uint64_t position = 0; position < n;) {
    std::set<uint64_t> blocks;
    uint64_t samples = 0;  // of the blocks that were met
    for (uint64_t read = 0; position < n && (blocks.size() < window || read < samples); ++read) {
      const uint64_t b = order.at(position) / block;
      if (blocks.insert(b).second) samples += std::min(block, n - b * block);
      RC_ASSERT(blocks.size() <= window);
      RC_ASSERT(!before.contains(b));
      ++position;
    }
    before.merge(blocks);
  }
}

TEST(BlockOrder, HasEachBlockInAnyWindowAndEachSampleAtAnyPlaceOfIt) {
  constexpr uint64_t kBlock = 64, kWindow = 64, kSamples = 65'536 - 17;
  std::vector<double> windows(16 * 16), places(16 * 16);
  for (uint64_t key = 0; key < 20; ++key) {
    const BlockOrder order(stream_key({key}), kSamples, {kBlock, kWindow});
    for (uint64_t i = 0; i < kSamples; ++i) {
      const uint64_t sample = order.at(i);
      const uint64_t window = i / (kBlock * kWindow);
      if (sample % kBlock == 0) ++windows[window * 16 + sample * 16 / kSamples];
      const uint64_t inside = i % (kBlock * kWindow);
      ++places[inside * 16 / (kBlock * kWindow) * 16 + sample % kBlock * 16 / kBlock];
    }
  }
  EXPECT_LT(std::abs(z_of(windows)), 3.0);
  EXPECT_LT(std::abs(z_of(places)), 3.0);
}

TEST(BlockOrder, HasNoPatternBetweenNeighbours) {
  constexpr uint64_t kBlock = 64, kBlocks = 1'024;
  for (const uint64_t distance : {1, 2, 16, 256}) {
    std::vector<double> offsets(64), blocks(64);
    for (uint64_t key = 0; key < 20; ++key) {
      const BlockOrder order(stream_key({key, distance}), kBlock * kBlocks, {kBlock, 256});
      for (uint64_t i = 0; i + distance < 16'384; i += 2 * distance) {
        const uint64_t a = order.at(i), b = order.at(i + distance);
        if (a / kBlock == b / kBlock) continue;  // more often than at random: that is the point
        ++offsets[(b % kBlock + kBlock - a % kBlock) % kBlock];
        // From 1 to kBlocks - 1 apart, so one bin has one less.
        ++blocks[(b / kBlock + kBlocks - a / kBlock) % kBlocks * 64 / kBlocks];
      }
    }
    EXPECT_LT(std::abs(z_of(offsets)), 3.0) << distance;
    EXPECT_LT(std::abs(z_of(blocks)), 3.0) << distance;
  }
}

// How much more the classes of a batch differ in number than if it were drawn at random, data
// sorted by label: 1 is as at random.
double spread_of_batches(const BlockShuffle& shuffle) {
  constexpr uint64_t kSamples = 1 << 18, kClasses = 16, kBatch = 64;
  constexpr double kExpected = static_cast<double>(kBatch) / kClasses;
  double chi2 = 0;
  uint64_t batches = 0;
  for (uint64_t key = 0; key < 4; ++key) {
    const BlockOrder order(stream_key({key}), kSamples, shuffle);
    for (uint64_t begin = 0; begin < kSamples; begin += kBatch, ++batches) {
      std::vector<double> counts(kClasses);
      for (uint64_t i = begin; i < begin + kBatch; ++i) ++counts[order.at(i) * kClasses / kSamples];
      for (const double count : counts) {
        const double off = count - kExpected;
        chi2 += off * off / kExpected;
      }
    }
  }
  return chi2 / static_cast<double>(batches) / (kClasses - 1);
}

TEST(BlockOrder, GivesNearlyRandomBatchesOfDataThatAreSortedByLabel) {
  EXPECT_LT(spread_of_batches({64, 256}), 1.35);  // 1 + 64 / 256 by theory
  EXPECT_GT(spread_of_batches({64, 8}), 5.0);
}

TEST(BlockOrder, FindsAnyPlaceOfTenBillionSamplesAtOnce) {
  constexpr uint64_t kSamples = 10'000'000'007;
  const BlockOrder order(9, kSamples, {4'096, 256});
  std::set<uint64_t> blocks;
  const uint64_t window = 4'096 * 256;
  for (uint64_t i = 0; i < 20'000; ++i) blocks.insert(order.at(5'000 * window + i) / 4'096);
  EXPECT_LE(blocks.size(), 257U);  // 256, where the short block came before: it moves the bounds
  EXPECT_GE(blocks.size(), 250U);
}

TEST(EpochOrder, OfBlocksDependsOnTheirSizes) {
  const OrderSpec spec{1, "data", 10'000, {64, 16}};
  const auto first = [](const OrderSpec& of, Epoch epoch) {
    const EpochOrder order(of, epoch);
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < 100; ++i) samples.push_back(order.at(i));
    return samples;
  };
  std::set<std::vector<uint64_t>> orders;
  for (const OrderSpec& other :
       {spec, OrderSpec{2, "data", 10'000, {64, 16}}, OrderSpec{1, "Data", 10'000, {64, 16}},
        OrderSpec{1, "data", 10'000, {32, 16}}, OrderSpec{1, "data", 10'000, {64, 17}},
        OrderSpec{1, "data", 10'000}})
    orders.insert(first(other, 0));
  orders.insert(first(spec, 1));
  EXPECT_EQ(orders.size(), 7U);
}

TEST(EpochOrder, OfBlocksStaysTheSameForeverUnderItsVersion) {
  static_assert(kBlockOrderVersion == 2, "new version: pin new values");
  const EpochOrder order({42, "fashion", 60'000, {1'024, 16}}, 0);
  std::vector<uint64_t> seen;
  for (const uint64_t i : {0, 1, 2, 16'384, 59'999}) seen.push_back(order.at(i));
  EXPECT_EQ(seen, (std::vector<uint64_t>{55365, 37977, 44810, 45220, 57881}));
}

}  // namespace
}  // namespace lockstep::data
