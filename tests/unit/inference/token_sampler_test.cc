// The choice of a token: by its probability, bounded as asked, the same for the same seed.
#include "worker/inference/token_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace lockstep {
namespace {

constexpr int kDraws = 20'000;

const std::vector<float> kLogits = {std::log(0.5F), std::log(0.3F), std::log(0.15F),
                                    std::log(0.05F)};

std::map<uint32_t, double> shares(const SamplingRule& rule) {
  std::map<uint32_t, double> found;
  for (uint64_t i = 0; i < kDraws; ++i) found[next_token(kLogits, rule, i)] += 1.0 / kDraws;
  return found;
}

TEST(TokenSampler, DrawsByTheProbabilities) {
  auto found = shares({});
  EXPECT_NEAR(found[0], 0.5, 0.02);
  EXPECT_NEAR(found[1], 0.3, 0.02);
  EXPECT_NEAR(found[2], 0.15, 0.02);
  EXPECT_NEAR(found[3], 0.05, 0.01);
}

TEST(TokenSampler, ATemperatureBendsThem) {
  auto cold = shares({.temperature = 0.5});  // squares, to a sum of one
  EXPECT_NEAR(cold[0], 0.25 / 0.365, 0.02);
  EXPECT_NEAR(cold[1], 0.09 / 0.365, 0.02);
  for (uint64_t i = 0; i < 100; ++i)
    EXPECT_EQ(next_token(kLogits, {.temperature = 0, .seed = i}, i), 0u);
}

TEST(TokenSampler, TopKAndTopPLeaveOutTheUnlikely) {
  auto two = shares({.top_k = 2});
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two[0], 0.5 / 0.8, 0.02);
  auto nucleus = shares({.top_p = 0.9});  // 0.5 + 0.3 < 0.9 <= 0.5 + 0.3 + 0.15
  EXPECT_EQ(nucleus.size(), 3u);
  EXPECT_NEAR(nucleus[2], 0.15 / 0.95, 0.02);
  EXPECT_EQ(shares({.top_p = 1e-9}).size(), 1u);
  // The bound counts after top_k: 0.5 / 0.8 is above 0.6.
  EXPECT_EQ(shares({.top_k = 2, .top_p = 0.6}).size(), 1u);
}

TEST(TokenSampler, ATokenWithoutALikelihoodIsNeverDrawnAndTiesGoToTheLower) {
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {never, 1, 1, never};
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint32_t token = next_token(logits, {}, i);
    EXPECT_TRUE(token == 1 || token == 2);
  }
  EXPECT_EQ(next_token(logits, {.temperature = 0}, 0), 1u);
  EXPECT_EQ(next_token(logits, {.top_k = 1}, 0), 1u);
}

TEST(TokenSampler, TheSeedAndTheNumberDecide) {
  std::vector<uint32_t> first;
  std::vector<uint32_t> again;
  std::vector<uint32_t> other;
  for (uint64_t i = 0; i < 50; ++i) {
    first.push_back(next_token(kLogits, {.seed = 1}, i));
    again.push_back(next_token(kLogits, {.seed = 1}, i));
    other.push_back(next_token(kLogits, {.seed = 2}, i));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

}  // namespace
}  // namespace lockstep
