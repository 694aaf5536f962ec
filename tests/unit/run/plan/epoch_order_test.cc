#include "comm/run/plan/epoch_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "comm/base/prng.h"

namespace lockstep::data {
namespace {

std::vector<uint64_t> first_of(const EpochOrder& order, uint64_t n) {
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < n; ++i) samples.push_back(order.at(i));
  return samples;
}

void expect_permutation(const EpochOrder& order, uint64_t n) {
  std::vector<bool> seen(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t sample = order.at(i);
    ASSERT_LT(sample, n);
    ASSERT_FALSE(seen[sample]) << "sample " << sample << " comes twice, n = " << n;
    seen[sample] = true;
  }
}

// Chi-square over `counts` as a standard normal deviate (Wilson, Hilferty 1931).
double z_of(const std::vector<double>& counts, double total) {
  const double expected = total / static_cast<double>(counts.size());
  double chi2 = 0;
  for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
  const double df = static_cast<double>(counts.size()) - 1;
  return (std::cbrt(chi2 / df) - (1 - 2 / (9 * df))) / std::sqrt(2 / (9 * df));
}

// Do all n! permutations of a tiny set come equally often over many keys?
double z_of_tiny(uint64_t n, int rounds) {
  constexpr uint64_t kKeys = 20'000;
  size_t permutations = 1;
  for (uint64_t i = 2; i <= n; ++i) permutations *= i;
  std::map<std::vector<uint64_t>, double> seen;
  for (uint64_t k = 0; k < kKeys; ++k) {
    const FeistelPermutation permutation(stream_key({k, n}), n, rounds);
    std::vector<uint64_t> values;
    for (uint64_t i = 0; i < n; ++i) values.push_back(permutation.at(i));
    ++seen[values];
  }
  std::vector<double> counts(permutations);
  size_t next = 0;
  for (const auto& [values, count] : seen) counts[next++] = count;
  return z_of(counts, kKeys);
}

// Are the distances between the values at positions i and i + distance uniform modulo n?
double z_of_distances(uint64_t n, uint64_t distance, int rounds) {
  constexpr uint64_t kBins = 64;
  std::vector<double> counts(kBins);
  double total = 0;
  for (uint64_t k = 0; k < 20; ++k) {
    const FeistelPermutation permutation(stream_key({k, n, distance}), n, rounds);
    for (uint64_t i = 0; i + distance < n && i < 20'000; i += 2 * distance) {
      const uint64_t apart = (permutation.at(i + distance) + n - permutation.at(i)) % n;
      ++counts[apart * kBins / n];
      ++total;
    }
  }
  return z_of(counts, total);
}

// Does each sixteenth of an epoch draw evenly from each sixteenth of the data?
double z_of_grid(uint64_t n, int rounds) {
  std::vector<double> counts(256);
  double total = 0;
  for (uint64_t k = 0; k < 10; ++k) {
    const FeistelPermutation permutation(stream_key({k, n, 16}), n, rounds);
    for (uint64_t i = 0; i < n; ++i) {
      ++counts[i * 16 / n * 16 + permutation.at(i) * 16 / n];
      ++total;
    }
  }
  return z_of(counts, total);
}

double worst_z(int rounds) {
  double worst = 0;
  for (const uint64_t n : {2, 3, 4, 5}) worst = std::max(worst, std::abs(z_of_tiny(n, rounds)));
  for (const uint64_t n : {1024, 60'000, 65'536, 1'281'167})
    for (const uint64_t distance : {1, 2, 16, 256})
      worst = std::max(worst, std::abs(z_of_distances(n, distance, rounds)));
  for (const uint64_t n : {1024, 60'000, 65'536})
    worst = std::max(worst, std::abs(z_of_grid(n, rounds)));
  return worst;
}

TEST(EpochOrder, IsAPermutationOfTheSizesAtTheEdges) {
  std::vector<uint64_t> sizes = {1, 2, 3, 5, 7, 60'000};
  for (uint64_t power = 4; power <= 65'536; power *= 2)
    for (const uint64_t n : {power - 1, power, power + 1}) sizes.push_back(n);
  for (const uint64_t n : sizes) expect_permutation(EpochOrder({7, "data", n}, 3), n);
}

RC_GTEST_PROP(EpochOrder, IsAPermutationOfAnySize, (uint64_t seed, uint32_t epoch)) {
  const auto n = *rc::gen::inRange<uint64_t>(1, 5'000);
  const EpochOrder order({seed, "data", n}, epoch);
  std::vector<bool> seen(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t sample = order.at(i);
    RC_ASSERT(sample < n);
    RC_ASSERT(!seen[sample]);
    seen[sample] = true;
  }
}

TEST(EpochOrder, HasNoPatternThatSixRoundsShouldRemove) {
  EXPECT_LT(worst_z(6), 3.0);
}

TEST(EpochOrder, WithTwoRoundsFailsTheSameStatistics) {
  EXPECT_GT(worst_z(2), 30.0);
}

TEST(EpochOrder, OfTwoEpochsSeedsOrDatasetsHasNothingInCommon) {
  constexpr uint64_t kSamples = 60'000;
  const EpochOrder base({1, "data", kSamples}, 2);
  const EpochOrder others[] = {
      EpochOrder({1, "data", kSamples}, 3), EpochOrder({2, "data", kSamples}, 2),
      EpochOrder({2, "data", kSamples}, 1), EpochOrder({1, "Data", kSamples}, 2)};
  for (const EpochOrder& other : others) {
    uint64_t equal = 0;
    for (uint64_t i = 0; i < kSamples; ++i) equal += base.at(i) == other.at(i);
    EXPECT_LE(equal, 6U);  // Poisson with mean 1: more happens once in 10,000
  }
}

TEST(EpochOrder, StaysTheSameForeverUnderItsVersion) {
  static_assert(kOrderVersion == 1, "new version: pin new values");
  EXPECT_EQ(first_of(EpochOrder({42, "fashion", 60'000}, 0), 6),
            (std::vector<uint64_t>{41226, 47751, 18789, 11037, 25112, 44390}));
  EXPECT_EQ(first_of(EpochOrder({42, "fashion", 60'000}, 1), 6),
            (std::vector<uint64_t>{12380, 45933, 21549, 18048, 42043, 36314}));
  EXPECT_EQ(first_of(EpochOrder({0, "", 3}, 0), 3), (std::vector<uint64_t>{2, 1, 0}));
  EXPECT_EQ(first_of(EpochOrder({1, "big", 10'000'000'000}, 0), 2),
            (std::vector<uint64_t>{2259502296, 7890752730}));
}

}  // namespace
}  // namespace lockstep::data
