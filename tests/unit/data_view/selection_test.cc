#include "data/view/selection.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "comm/base/prng.h"

namespace lockstep::data {
namespace {

std::vector<uint64_t> all_of(const Selection& selection, SelectionPart part) {
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < selection.size(part); ++i) samples.push_back(selection.at(part, i));
  return samples;
}

RC_GTEST_PROP(Selection, HeldOutAndKeptHaveNothingTwiceAndNothingInCommon, (uint64_t key)) {
  const auto n = *rc::gen::inRange<uint64_t>(1, 20'000);
  const double held = *rc::gen::inRange(0, 1'000) / 1'000.0;
  const double kept = *rc::gen::inRange(0, 1'001) / 1'000.0;
  const Selection selection(n, held, kept, key);
  std::vector<bool> seen(n);
  for (const SelectionPart part : {SelectionPart::kHeldOut, SelectionPart::kKept}) {
    for (const uint64_t sample : all_of(selection, part)) {
      RC_ASSERT(sample < n);
      RC_ASSERT(!seen[sample]);
      seen[sample] = true;
    }
  }
  const auto thousandths = [](double share) {
    return static_cast<uint64_t>(std::llround(share * 1'000));
  };
  const uint64_t held_out = n * thousandths(held) / 1'000;
  RC_ASSERT(selection.size(SelectionPart::kHeldOut) == held_out);
  RC_ASSERT(selection.size(SelectionPart::kKept) == (n - held_out) * thousandths(kept) / 1'000);
}

TEST(Selection, OfAllIsAllAndOfNoneNone) {
  const Selection selection(10'000, 0, 1, 7);
  EXPECT_EQ(selection.size(SelectionPart::kHeldOut), 0U);
  const auto kept = all_of(selection, SelectionPart::kKept);
  EXPECT_EQ(std::set<uint64_t>(kept.begin(), kept.end()).size(), 10'000U);
}

TEST(Selection, WhatIsHeldOutDoesNotDependOnTheShareThatIsKept) {
  const auto held = all_of(Selection(50'000, 0.1, 1, 3), SelectionPart::kHeldOut);
  EXPECT_EQ(held, all_of(Selection(50'000, 0.1, 0.01, 3), SelectionPart::kHeldOut));
  EXPECT_NE(held, all_of(Selection(50'000, 0.1, 1, 4), SelectionPart::kHeldOut));
}

// 100 classes of 1,000 samples, one after another: each is held out by its share.
TEST(Selection, TakesOfEveryPartOfTheDataItsShare) {
  std::vector<double> counts(100);
  for (const uint64_t sample : all_of(Selection(100'000, 0.1, 1, 5), SelectionPart::kHeldOut))
    ++counts[sample / 1'000];
  for (const double count : counts) EXPECT_NEAR(count, 100, 6 * std::sqrt(90.0));
}

// Which of a stripe are taken: every place by its share, over many keys.
TEST(Selection, HasNoPlaceThatIsTakenMoreOftenThanOthers) {
  constexpr uint64_t kSamples = 4'096, kBins = 64, kKeys = 400;
  std::vector<double> counts(kBins);
  double total = 0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const Selection selection(kSamples, 0.05, 1, stream_key({key}));
    for (const uint64_t sample : all_of(selection, SelectionPart::kHeldOut)) {
      ++counts[sample * kBins / kSamples];
      ++total;
    }
  }
  double chi2 = 0;
  for (const double count : counts)
    chi2 += (count - total / kBins) * (count - total / kBins) / (total / kBins);
  EXPECT_LT(chi2, kBins - 1 + 3 * std::sqrt(2.0 * (kBins - 1)));
}

TEST(Selection, NeighboursLieNearEachOtherAndAnyNumberOfSamplesTakesNoMemory) {
  constexpr uint64_t kSamples = 10'000'000'000;
  const Selection selection(kSamples, 0.001, 0.01, 9);
  ASSERT_EQ(selection.size(SelectionPart::kHeldOut), 10'000'000U);
  ASSERT_EQ(selection.size(SelectionPart::kKept), 99'900'000U);
  for (const uint64_t i : {uint64_t{0}, uint64_t{5'000'000}, uint64_t{9'999'998}}) {
    const uint64_t a = selection.at(SelectionPart::kHeldOut, i);
    const uint64_t b = selection.at(SelectionPart::kHeldOut, i + 1);
    EXPECT_LT(a > b ? a - b : b - a, 3 * Selection::kStripeSamples);
    EXPECT_NEAR(static_cast<double>(a), static_cast<double>(i) * 1'000, 2.0 * 4'096);
  }
  EXPECT_LT(selection.at(SelectionPart::kKept, 99'899'999), kSamples);
}

TEST(Selection, OfATinyShareIsFoundWhereItIs) {
  const Selection selection(3'000'000'000, 1e-9, 1e-9, 1);
  ASSERT_EQ(selection.size(SelectionPart::kHeldOut), 3U);
  ASSERT_EQ(selection.size(SelectionPart::kKept), 2U);  // of 2,999,999,997
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 3; ++i) seen.insert(selection.at(SelectionPart::kHeldOut, i));
  for (uint64_t i = 0; i < 2; ++i) seen.insert(selection.at(SelectionPart::kKept, i));
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Selection, StaysTheSameForeverUnderItsVersion) {
  static_assert(kSelectionVersion == 1, "new version: pin new values");
  const Selection selection(100'000, 0.1, 0.5, 42);
  std::vector<uint64_t> seen;
  for (const uint64_t i : {0, 1, 9'999}) seen.push_back(selection.at(SelectionPart::kHeldOut, i));
  for (const uint64_t i : {0, 1, 44'999}) seen.push_back(selection.at(SelectionPart::kKept, i));
  EXPECT_EQ(seen, (std::vector<uint64_t>{3103, 757, 99606, 364, 3869, 99046}));
}

}  // namespace
}  // namespace lockstep::data
