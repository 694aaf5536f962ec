#include "worker/optim/prune.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

using Floats = std::vector<float>;

wire::PruneSpec spec_of(double sparsity, uint64_t from, uint64_t to, uint64_t every = 0) {
  wire::PruneSpec spec;
  spec.set_sparsity(sparsity);
  spec.set_from(from);
  spec.set_to(to);
  spec.set_every(every);
  return spec;
}

std::vector<Step> steps_of(const wire::PruneSpec& spec, Step most) {
  std::vector<Step> steps;
  for (Step applied = 0; applied <= most; ++applied)
    if (prunes_after(spec, applied)) steps.push_back(applied);
  return steps;
}

TEST(Prune, HappensEverySoManyStepsAndAtTheLast) {
  EXPECT_EQ(steps_of(spec_of(0.5, 10, 20, 4), 30), (std::vector<Step>{14, 18, 20}));
  EXPECT_EQ(steps_of(spec_of(0.5, 0, 3), 30), (std::vector<Step>{1, 2, 3}));
  EXPECT_EQ(steps_of(spec_of(0.5, 100, 1100), 2000).size(), 100u);
  EXPECT_EQ(steps_of(spec_of(0, 0, 0), 30), std::vector<Step>{});
}

TEST(Prune, TheShareGrowsAsTheCubeSays) {
  const wire::PruneSpec spec = spec_of(0.8, 100, 1000);
  EXPECT_EQ(sparsity_after(spec, 100), 0);
  EXPECT_DOUBLE_EQ(sparsity_after(spec, 550), 0.8 * (1 - 0.125));
  EXPECT_EQ(sparsity_after(spec, 1000), 0.8);
  EXPECT_EQ(sparsity_after(spec, 5000), 0.8);
  double before = 0;
  for (Step applied = 101; applied <= 1000; ++applied) {
    EXPECT_GT(sparsity_after(spec, applied), before);
    before = sparsity_after(spec, applied);
  }
}

TEST(Prune, ZerosAreKeptFromTheFirstStepOn) {
  EXPECT_FALSE(keeps_zeros_at(spec_of(0.5, 10, 20), 9));
  EXPECT_TRUE(keeps_zeros_at(spec_of(0.5, 10, 20), 10));
  EXPECT_TRUE(keeps_zeros_at(spec_of(0.5, 10, 20), 1000));
  EXPECT_FALSE(keeps_zeros_at(spec_of(0, 0, 0), 10));
}

TEST(Prune, TheSmallestGoAndOfEqualOnesTheFirst) {
  Floats weights = {0.5f, -0.1f, 0.2f, 0.1f, -0.2f, 3};
  Floats average = {1, 2, 3, 4, 5, 6};
  prune_smallest(weights.data(), weights.size(), 0.5, average.data());
  EXPECT_EQ(weights, (Floats{0.5f, 0, 0, 0, -0.2f, 3}));
  EXPECT_EQ(average, (Floats{1, 0, 0, 0, 5, 6}));
  prune_smallest(weights.data(), weights.size(), 0.5);  // they are zero already
  EXPECT_EQ(weights, (Floats{0.5f, 0, 0, 0, -0.2f, 3}));
}

TEST(Prune, ASmallShareOfAFewIsNone) {
  Floats weights = {2, 1};
  prune_smallest(weights.data(), weights.size(), 0.49);
  EXPECT_EQ(weights, (Floats{2, 1}));
  prune_smallest(weights.data(), 0, 0.9);
}

TEST(Prune, WhatIsNoNumberStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  Floats weights = {nan, -infinity, -1, 7};
  prune_smallest(weights.data(), weights.size(), 0.5);
  EXPECT_TRUE(std::isnan(weights[0]));
  EXPECT_EQ((Floats{weights.begin() + 1, weights.end()}), (Floats{-infinity, 0, 0}));
}

}  // namespace
}  // namespace lockstep
