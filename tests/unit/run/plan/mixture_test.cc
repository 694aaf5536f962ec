#include "comm/run/plan/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "comm/run/plan/digest.h"
#include "comm/run/plan/epoch_order.h"
#include "tests/support/fails_with.h"

namespace lockstep::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;

std::vector<uint32_t> pattern_of(const std::vector<uint32_t>& weights) {
  const MixPattern pattern(weights);
  std::vector<uint32_t> sets;
  for (uint64_t place = 0; place < pattern.size(); ++place) sets.push_back(pattern.set_at(place));
  return sets;
}

std::vector<MixedPart> parts_of(const std::vector<std::pair<uint64_t, uint32_t>>& sizes) {
  std::vector<MixedPart> parts;
  for (const auto& [samples, weight] : sizes)
    parts.push_back({"set " + std::to_string(parts.size()), samples, weight});
  return parts;
}

OrderSpec spec_of(const std::vector<MixedPart>& parts, const BlockShuffle& blocks = {}) {
  return {7, "all of them", units_of(parts), blocks, 0, parts};
}

// Weights and samples of which every set has a unit in an epoch.
std::vector<MixedPart> some_parts() {
  const auto sets = *rc::gen::inRange<size_t>(2, 6);
  std::vector<MixedPart> parts;
  for (size_t i = 0; i < sets; ++i)
    parts.push_back({"set " + std::to_string(i), *rc::gen::inRange<uint64_t>(1, 60),
                     *rc::gen::inRange<uint32_t>(1, 12)});
  RC_PRE(check_mixture(parts).is_ok());
  return parts;
}

TEST(MixPattern, SpreadsEachSetAndRepeatsNothingThatWeightsHaveInCommon) {
  EXPECT_THAT(pattern_of({1, 1}), ElementsAre(0, 1));
  EXPECT_THAT(pattern_of({70, 20, 10}), ElementsAre(0, 0, 1, 0, 0, 2, 0, 0, 1, 0));
  EXPECT_EQ(pattern_of({70, 20, 10}), pattern_of({7, 2, 1}));
  EXPECT_THAT(pattern_of({1, 3}), ElementsAre(1, 0, 1, 1));
}

// The bound that Tijdeman proves.
RC_GTEST_PROP(MixPattern, IsNowhereAWholeUnitFromTheShares, ()) {
  const auto sets = *rc::gen::inRange<size_t>(2, 20);
  std::vector<uint32_t> weights;
  for (size_t i = 0; i < sets; ++i) weights.push_back(*rc::gen::inRange<uint32_t>(1, 200));
  const MixPattern pattern(weights);
  const double bound = 1 - 1 / (2 * static_cast<double>(sets) - 2);
  std::vector<uint32_t> counts(sets);
  for (uint64_t place = 0; place < pattern.size(); ++place) {
    const uint32_t set = pattern.set_at(place);
    RC_ASSERT(pattern.count_before(place) == counts[set]++);
    for (uint32_t i = 0; i < sets; ++i) {
      const double share = static_cast<double>(pattern.weight(i)) * static_cast<double>(place + 1) /
                           static_cast<double>(pattern.size());
      RC_ASSERT(std::abs(share - counts[i]) <= bound + 1e-9);
      RC_ASSERT(pattern.count(i, place + 1) == counts[i]);
    }
  }
  for (uint32_t i = 0; i < sets; ++i) RC_ASSERT(counts[i] == pattern.weight(i));
}

TEST(Mixture, AnEpochEndsWithTheLastSampleOfTheFirstSet) {
  const Mixture whole(parts_of({{7'000, 7}, {50, 2}, {1'000'000, 1}}));
  EXPECT_EQ(whole.units(), 10'000u);
  EXPECT_EQ(whole.units_of(0), 7'000u);
  EXPECT_EQ(whole.units_of(1), 2'000u);
  EXPECT_EQ(whole.units_of(2), 1'000u);
  const Mixture part(parts_of({{8, 7}, {5, 2}, {5, 1}}));  // 7, and the first of the next block
  EXPECT_EQ(part.units(), 11u);
  EXPECT_EQ(part.at(0, 10).set, 0u);
}

// Every (pass, position) of every set once and in turn, whatever the epochs cut off.
RC_GTEST_PROP(Mixture, NothingOfAPassIsLostOrRepeated, ()) {
  const std::vector<MixedPart> parts = some_parts();
  const Mixture mixture(parts);
  std::vector<uint64_t> next(parts.size());  // of each set, over all of its passes
  for (Epoch epoch = 0; epoch < 5; ++epoch) {
    for (uint64_t position = 0; position < mixture.units(); ++position) {
      const Mixture::Unit unit = mixture.at(epoch, position);
      RC_ASSERT(unit.pass == next[unit.set] / parts[unit.set].samples);
      RC_ASSERT(unit.position == next[unit.set] % parts[unit.set].samples);
      ++next[unit.set];
    }
    RC_ASSERT(next[0] == (epoch + 1) * parts[0].samples);
  }
}

// In orders of single samples and of blocks, each pass is a permutation, and the first set has one
// pass an epoch.
RC_GTEST_PROP(MixedOrder, APassOfEachSetIsAPermutation, ()) {
  const std::vector<MixedPart> parts = some_parts();
  const BlockShuffle blocks = *rc::gen::arbitrary<bool>() ? BlockShuffle{4, 3} : BlockShuffle{};
  const OrderSpec spec = spec_of(parts, blocks);
  std::set<std::tuple<uint32_t, uint64_t, uint64_t>> seen;  // (set, pass, sample)
  uint64_t units = 0;
  for (Epoch epoch = 0; epoch < 4; ++epoch) {
    const EpochOrder order(spec, epoch);
    for (uint64_t position = 0; position < spec.samples; ++position, ++units) {
      const Mixture::Unit unit = order.mixed()->unit_at(position);
      uint64_t sample = order.at(position);
      for (uint32_t i = 0; i < unit.set; ++i) sample -= parts[i].samples;
      RC_ASSERT(sample < parts[unit.set].samples);
      RC_ASSERT(seen.emplace(unit.set, unit.pass, sample).second);
    }
  }
  RC_ASSERT(seen.size() == units);
}

TEST(MixedOrder, APassIsInTheOrderOfARunOnThatSetAlone) {
  const std::vector<MixedPart> parts = parts_of({{100, 2}, {30, 1}});
  const EpochOrder order(spec_of(parts), 3);
  for (uint64_t position = 0; position < units_of(parts); ++position) {
    const Mixture::Unit unit = order.mixed()->unit_at(position);
    const EpochOrder alone({7, parts[unit.set].fingerprint, parts[unit.set].samples},
                           static_cast<Epoch>(unit.pass));
    EXPECT_EQ(order.at(position), alone.at(unit.position) + (unit.set == 0 ? 0 : 100));
  }
}

// More passes of a small set in one epoch than have their orders made ahead.
TEST(MixedOrder, ASetMayHaveManyPassesInAnEpoch) {
  const std::vector<MixedPart> parts = parts_of({{1'000, 1}, {3, 1}});
  const EpochOrder order(spec_of(parts), 1);
  std::vector<uint32_t> times(3);
  for (uint64_t position = 0; position < 2'000; ++position) {
    const uint64_t sample = order.at(position);
    if (sample >= 1'000) ++times[sample - 1'000];
  }
  EXPECT_EQ(std::accumulate(times.begin(), times.end(), 0u), 1'000u);
  for (const uint32_t count : times) EXPECT_NEAR(count, 333, 1);
}

TEST(MixedOrder, StaysTheSameForeverUnderItsVersion) {
  static_assert(kMixedOrderVersion == 3 && kMixedBlockOrderVersion == 4, "pin new values");
  const std::vector<MixedPart> parts = parts_of({{60'000, 3}, {1'000, 1}});
  const EpochOrder order(spec_of(parts), 2);
  std::vector<uint64_t> first;
  for (uint64_t position = 0; position < 6; ++position) first.push_back(order.at(position));
  EXPECT_THAT(first, ElementsAre(14000, 40322, 60353, 13608, 49484, 29760));
}

// The digest of a slot covers (set, pass, position, sample), so it shows a sample of another pass
// or set even where its number is the same.
TEST(MixedDigest, IsThatOfTheSamplesOfEachSetAndPass) {
  const std::vector<MixedPart> parts = parts_of({{40, 1}, {10, 1}});
  const OrderSpec spec = spec_of(parts);
  const StepPlan plan = plan_step({spec.samples, 16, 2}, 7);
  const EpochOrder order(spec, plan.epoch);
  const PositionRange range = slot_positions(plan, 1, 2);
  SampleDigest expected(0, plan.epoch);
  std::vector<uint64_t> samples;
  for (uint64_t p = range.begin; p < range.end; ++p) {
    const Mixture::Unit unit = order.mixed()->unit_at(p);
    expected.enter(unit.set, unit.pass);
    expected.add(unit.position, order.at(p));
    samples.push_back(order.at(p));
  }
  EXPECT_EQ(planned_digest(order, plan, 1, 2), expected.value());
  EXPECT_EQ(delivered_digest(order, plan.epoch, range.begin, samples), expected.value());
  const EpochOrder next(spec, plan.epoch + 1);
  EXPECT_NE(delivered_digest(next, plan.epoch, range.begin, samples), expected.value());
  std::swap(samples[0], samples[1]);
  EXPECT_NE(delivered_digest(order, plan.epoch, range.begin, samples), expected.value());
}

TEST(CheckMixture, SaysWhatCannotBeMixed) {
  const auto said = [](const std::vector<MixedPart>& parts) {
    const Status status = check_mixture(parts);
    return status.is_ok() ? std::string("ok") : status.message();
  };
  EXPECT_EQ(said(parts_of({{5, 2}, {5, 1}})), "ok");
  EXPECT_THAT(said(parts_of({{5, 1}})), Names("2 to 64"));
  EXPECT_THAT(said(std::vector<MixedPart>(65, {"a", 5, 1})), Names("65"));
  EXPECT_THAT(said(parts_of({{5, 1}, {5, 0}})), AllOf(Names("data set 1"), Says("no weight")));
  EXPECT_THAT(said(parts_of({{5, 1}, {0, 1}})), Says("0 samples"));
  EXPECT_THAT(said(parts_of({{5, 60'000}, {5, 40'001}})), Says("100000"));
  EXPECT_THAT(said(parts_of({{5, 1'000}, {5, 1}})), Says("one sample"));
  EXPECT_THAT(said(parts_of({{uint64_t{1} << 61, 1}, {5, 9}})), Says("too many"));
}

}  // namespace
}  // namespace lockstep::data
