#include "comm/run/plan/class_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "comm/run/plan/epoch_order.h"

namespace lockstep::data {
namespace {

RC_GTEST_PROP(ClassOrder, IsAPermutationThatStaysInItsClass, (uint64_t key)) {
  const auto n = *rc::gen::inRange<uint64_t>(1, 3'000);
  const auto classes = *rc::gen::inRange<uint32_t>(1, 60);
  const ClassOrder order(key, n, classes);
  const uint64_t count = std::min<uint64_t>(classes, n);
  std::vector<bool> seen(n);
  uint64_t c = 0;
  for (uint64_t i = 0; i < n; ++i) {
    while (i >= (c + 1) * n / count) ++c;
    const uint64_t sample = order.at(i);
    RC_ASSERT(sample >= c * n / count && sample < (c + 1) * n / count);
    RC_ASSERT(!seen[sample]);
    seen[sample] = true;
  }
}

// The sum of the distances of neighbours within the classes, as a standard normal deviate: of a
// random permutation of m they are (m + 1) / 3 on average, with variance (m + 1)(m - 2) / 18.
TEST(ClassOrder, InAClassNeighboursAreStrangers) {
  constexpr uint64_t kSamples = 60'000;
  constexpr uint32_t kClasses = 12;
  constexpr uint64_t kEach = kSamples / kClasses;
  const OrderSpec spec{.seed = 5, .fingerprint = "data", .samples = kSamples, .classes = kClasses};
  const EpochOrder order(spec, 2);
  double sum = 0;
  uint64_t pairs = 0;
  for (uint64_t i = 0; i + 1 < kSamples; ++i) {
    if ((i + 1) % kEach == 0) continue;
    sum += std::fabs(static_cast<double>(order.at(i)) - static_cast<double>(order.at(i + 1)));
    ++pairs;
  }
  const double m = kEach;
  const double deviation = std::sqrt((m + 1) * (m - 2) / 18 * static_cast<double>(pairs));
  EXPECT_LT(std::fabs(sum - (m + 1) / 3 * static_cast<double>(pairs)) / deviation, 3);
}

TEST(ClassOrder, DependsOnSeedEpochDataAndClasses) {
  const OrderSpec spec{.seed = 5, .fingerprint = "data", .samples = 1'000, .classes = 4};
  const auto first = [](const OrderSpec& of, Epoch epoch) {
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < 100; ++i) samples.push_back(EpochOrder(of, epoch).at(i));
    return samples;
  };
  const auto usual = first(spec, 0);
  EXPECT_EQ(usual, first(spec, 0));
  EXPECT_NE(usual, first(spec, 1));
  OrderSpec other = spec;
  other.seed = 6;
  EXPECT_NE(usual, first(other, 0));
  other = spec;
  other.fingerprint = "others";
  EXPECT_NE(usual, first(other, 0));
  other = spec;
  other.classes = 5;
  EXPECT_NE(usual, first(other, 0));
}

}  // namespace
}  // namespace lockstep::data
