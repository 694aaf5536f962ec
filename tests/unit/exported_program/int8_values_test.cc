// Weights in 8 bits: rounding, scales, and what is refused.
#include "worker/model/int8/int8_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

Int8Values made(const std::vector<float>& weights, const ChannelExtents& extents) {
  auto values = to_int8("w", weights, extents);
  EXPECT_TRUE(values.is_ok()) << values.status().message();
  return values.is_ok() ? *values : Int8Values{};
}

TEST(Int8Values, TheDimensionOfChannelsSplitsTheShape) {
  const std::vector<int64_t> shape = {2, 3, 4, 5};
  const ChannelExtents first = extents_along(shape, 0);
  EXPECT_EQ(first.outer, 1u);
  EXPECT_EQ(first.channels, 2u);
  EXPECT_EQ(first.inner, 60u);
  const ChannelExtents second = extents_along(shape, 1);
  EXPECT_EQ(second.outer, 2u);
  EXPECT_EQ(second.channels, 3u);
  EXPECT_EQ(second.inner, 20u);
}

TEST(Int8Values, AHalfIsRoundedToTheEvenNumber) {
  const std::vector<float> weights = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 126.5F};
  const Int8Values values = made(weights, {1, 1, weights.size()});
  EXPECT_EQ(values.scales, std::vector<float>{1});
  EXPECT_EQ(values.numbers, (std::vector<int8_t>{127, 0, 2, 2, 0, -2, -2, 126}));
}

TEST(Int8Values, EachChannelHasTheScaleOfItsLargestWeight) {
  const std::vector<float> weights = {1, -254, 0.5F, 0, 2, -0.125F};  // columns are channels
  const Int8Values values = made(weights, {3, 2, 1});
  EXPECT_EQ(values.scales, (std::vector<float>{2.0F / 127, 2}));
  EXPECT_EQ(values.numbers, (std::vector<int8_t>{64, -127, 32, 0, 127, 0}));
}

TEST(Int8Values, NoWeightMovesByMoreThanHalfAScale) {
  std::vector<float> weights;
  for (int i = 0; i < 600; ++i)
    weights.push_back(std::sin(static_cast<float>(i) * 1.7F) * std::pow(10.0F, i % 7 - 4.0F));
  const ChannelExtents extents{1, 20, 30};
  const Int8Values values = made(weights, extents);
  std::vector<float> floats(weights.size());
  from_int8(values.numbers, values.scales, extents, floats);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LE(std::fabs(floats[i] - weights[i]), values.scales[i / 30] * 0.5001F) << i;
    EXPECT_GE(values.numbers[i], -127);
  }
}

TEST(Int8Values, ZerosAndTinyWeightsHaveAScaleToDivideBy) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const Int8Values values = made({0, -0.0F, tiny, -tiny}, {1, 2, 2});
  EXPECT_EQ(values.scales, (std::vector<float>{1, std::numeric_limits<float>::min()}));
  EXPECT_EQ(values.numbers, (std::vector<int8_t>{0, 0, 0, 0}));
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(made({most, -most}, {1, 1, 2}).numbers, (std::vector<int8_t>{127, -127}));
}

TEST(Int8Values, WhatIsNotFiniteIsRefusedByName) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()})
    EXPECT_THAT(to_int8("fc.weight", std::vector<float>{1, bad}, {1, 1, 2}),
                FailsWith(Code::kBadData, Names("fc.weight", "NaN"), Advises("--checkpoint STEP")));
}

TEST(Int8Values, BiasesAndNarrowMatricesAreNotWorthIt) {
  EXPECT_FALSE(is_worth_int8(std::vector<int64_t>{100}, 0));
  EXPECT_FALSE(is_worth_int8(std::vector<int64_t>{100, 3}, 0));
  EXPECT_FALSE(is_worth_int8(std::vector<int64_t>{0, 100}, 0));
  EXPECT_TRUE(is_worth_int8(std::vector<int64_t>{100, 4}, 0));
  EXPECT_TRUE(is_worth_int8(std::vector<int64_t>{4, 100}, 1));
}

}  // namespace
}  // namespace lockstep
