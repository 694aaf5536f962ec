#include "data/transform/beta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

namespace lockstep::data {
namespace {

constexpr size_t kDraws = 20'000;

std::vector<double> draws(double alpha) {
  std::vector<double> values;
  for (uint64_t key = 0; key < kDraws; ++key) values.push_back(draw_beta(key, alpha));
  return values;
}

// Kolmogorov's and Smirnov's: 1.95 / sqrt(n) is surpassed once in a thousand times.
void expect_distribution(double alpha, const std::function<double(double)>& below) {
  std::vector<double> sorted = draws(alpha);
  std::sort(sorted.begin(), sorted.end());
  double most = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double share = below(sorted[i]);
    most = std::max({most, std::abs(share - static_cast<double>(i) / kDraws),
                     std::abs(share - static_cast<double>(i + 1) / kDraws)});
  }
  EXPECT_LT(most * std::sqrt(kDraws), 1.95) << alpha;
}

TEST(Beta, DrawsAreDistributedAsTheFunctionsThatAreKnown) {
  expect_distribution(1, [](double x) { return x; });
  expect_distribution(0.5, [](double x) { return 2 / std::numbers::pi * std::asin(std::sqrt(x)); });
  expect_distribution(2, [](double x) { return x * x * (3 - 2 * x); });
  expect_distribution(3, [](double x) { return x * x * x * (10 + x * (6 * x - 15)); });
}

// Against the incomplete integral of (x (1 - x))^(a - 1), by the middle of many thin strips of
// x = (1 - cos t) / 2, in which nothing is infinite from half a parameter upwards; below, of
// t = x^a.
TEST(Beta, DrawsOfSmallParametersAreDistributedAsTheIntegralSays) {
  for (const double alpha : {0.1, 0.2, 0.4}) {
    constexpr size_t kStrips = 20'000;
    std::vector<double> sums{0};  // of x^alpha up to one half
    const double end = std::pow(0.5, alpha);
    for (size_t i = 0; i < kStrips; ++i) {
      const double t = end * (static_cast<double>(i) + 0.5) / kStrips;
      sums.push_back(sums.back() + std::pow(1 - std::pow(t, 1 / alpha), alpha - 1));
    }
    const auto lower = [&](double x) {
      const double place = std::pow(x, alpha) / end * kStrips;
      const auto i = std::min(static_cast<size_t>(place), kStrips - 1);
      const double sum = sums[i] + (sums[i + 1] - sums[i]) * (place - static_cast<double>(i));
      return 0.5 * sum / sums.back();
    };
    expect_distribution(alpha, [&](double x) { return x < 0.5 ? lower(x) : 1 - lower(1 - x); });
  }
}

TEST(Beta, DrawsHaveTheMeanAndTheVarianceOfEveryParameter) {
  for (const double alpha : {0.001, 0.2, 0.499, 0.501, 0.75, 1.5, 10.0, 1000.0}) {
    double sum = 0, squares = 0;
    for (const double x : draws(alpha)) {
      ASSERT_GE(x, 0) << alpha;
      ASSERT_LE(x, 1) << alpha;
      sum += x - 0.5;
      squares += (x - 0.5) * (x - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_LT(std::abs(sum / kDraws), 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.05 * variance) << alpha;
  }
}

// Made by tests/golden/mixing_draws.py, which computes them in Python's floats: the same bits on
// any machine.
TEST(Beta, DrawsHaveTheirBitsEverywhere) {
  EXPECT_EQ(std::bit_cast<uint64_t>(draw_beta(1, 0.2)), 0x3feffff4494c9e94u);
  EXPECT_EQ(std::bit_cast<uint64_t>(draw_beta(2, 0.4)), 0x3fcbca6292beb380u);
  EXPECT_EQ(std::bit_cast<uint64_t>(draw_beta(3, 1)), 0x3fe2da1d1ff8a0aau);
  EXPECT_EQ(std::bit_cast<uint64_t>(draw_beta(4, 8.5)), 0x3fe1ed79f56d309cu);
}

}  // namespace
}  // namespace lockstep::data
