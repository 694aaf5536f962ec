// The loss of a row and its gradient against straightforward references in double.
#include "worker/cuda/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/unit/cuda/layer_values.h"

namespace lockstep::cuda {
namespace {

using Block = SerialTeam<512>;

template <typename T>
class CrossEntropies : public ::testing::Test {};
using Types = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(CrossEntropies, Types);

TYPED_TEST(CrossEntropies, GiveCrossEntropyAndItsGradientInPlace) {
  constexpr RowWidth kWidth{301, 384};
  constexpr uint32_t kLabel = 17;
  constexpr float kScale = 0.125f;
  auto logits = noise<TypeParam>(1, kWidth.stride);
  logits[5] = from_float<TypeParam>(80);  // exp of it is no float
  for (uint32_t i = kWidth.classes; i < kWidth.stride; ++i)
    logits[i] = from_float<TypeParam>(i % 2 == 0 ? 1e30f : NAN);  // padding is not looked at
  const auto before = logits;
  double total = 0;
  for (uint32_t i = 0; i < kWidth.classes; ++i)
    total += std::exp(static_cast<double>(to_float(before[i])) - 80);
  float loss = 0;
  cross_entropy_row<false>(Block{}, logits.data(), logits.data(), kWidth, {.label = kLabel}, kScale,
                           &loss, nullptr);
  const double expected_loss = std::log(total) + 80 - to_float(before[kLabel]);
  EXPECT_NEAR(loss, expected_loss, 1e-5 * expected_loss);
  for (uint32_t i = 0; i < kWidth.stride; ++i) {
    double expected = 0;
    if (i < kWidth.classes) {
      const double share = std::exp(static_cast<double>(to_float(before[i])) - 80) / total;
      expected = (share - (i == kLabel ? 1 : 0)) * kScale;
    }
    EXPECT_NEAR(to_float(logits[i]), expected, tolerance<TypeParam>(expected)) << i;
  }
}

TYPED_TEST(CrossEntropies, GiveTheLossOfMixedAndSmoothedLabelsInPlace) {
  constexpr RowWidth kWidth{301, 384};
  constexpr float kScale = 0.125f;
  for (const RowTarget& target : {RowTarget{17, 300, 0.75f, 0}, RowTarget{17, 17, 0.25f, 0.1f},
                                  RowTarget{.label = 0, .smoothing = 0.3f}}) {
    auto logits = noise<TypeParam>(1, kWidth.stride);
    const auto before = logits;
    std::vector<double> wanted(kWidth.stride, 0);
    double total = 0, expected = 0;
    for (uint32_t i = 0; i < kWidth.classes; ++i) {
      total += std::exp(static_cast<double>(to_float(before[i])));
      wanted[i] = static_cast<double>(target.smoothing) / kWidth.classes;
      if (i == target.label) wanted[i] += (1 - double{target.smoothing}) * double{target.share};
      if (i == target.other)
        wanted[i] += (1 - double{target.smoothing}) * (1 - double{target.share});
    }
    for (uint32_t i = 0; i < kWidth.classes; ++i)
      expected += wanted[i] * (std::log(total) - static_cast<double>(to_float(before[i])));
    float loss = 0;
    cross_entropy_row<false>(Block{}, logits.data(), logits.data(), kWidth, target, kScale, &loss,
                             nullptr);
    EXPECT_NEAR(loss, expected, 1e-5 * expected);
    for (uint32_t i = 0; i < kWidth.stride; ++i) {
      double gradient = 0;
      if (i < kWidth.classes)
        gradient =
            (std::exp(static_cast<double>(to_float(before[i]))) / total - wanted[i]) * kScale;
      EXPECT_NEAR(to_float(logits[i]), gradient, tolerance<TypeParam>(gradient)) << i;
    }
  }
}

TEST(CrossEntropy, OfASecondLabelThatIsNoClassIsNoNumberWhereItCounts) {
  for (const float share : {0.5f, 1.0f}) {
    auto logits = noise<float>(1, 16);
    float loss = 1;
    cross_entropy_row<false>(Block{}, logits.data(), logits.data(), {10, 16}, {2, 10, share, 0}, 1,
                             &loss, nullptr);
    EXPECT_EQ(std::isnan(loss), share < 1);
  }
}

TEST(CrossEntropy, OfAnIgnoredRowIsNothingAndOfAWrongLabelNoNumber) {
  for (const int64_t label : {kIgnoredLabel, int64_t{-1}, int64_t{10}}) {
    auto logits = noise<Bf16>(1, 16);
    float loss = 1;
    cross_entropy_row<false>(Block{}, logits.data(), logits.data(), {10, 16}, {.label = label}, 1,
                             &loss, nullptr);
    if (label == kIgnoredLabel)
      EXPECT_EQ(loss, 0.0f);
    else
      EXPECT_TRUE(std::isnan(loss)) << label;
    for (const Bf16& gradient : logits) EXPECT_EQ(gradient.bits, 0);
  }
}

TEST(CrossEntropy, TheRightRowIsTheOneWhoseLabelHasTheFirstOfTheLargestLogits) {
  const float logits[] = {0, 3, 1, 3, 9};  // the last is padding
  const RowWidth width{4, 5};
  for (const int64_t label : {0, 1, 2, 3, -1, 4}) {
    float gradient[5], loss;
    uint32_t right = 2;
    cross_entropy_row<false>(Block{}, logits, gradient, width, {.label = label}, 1, &loss, &right);
    EXPECT_EQ(right, label == 1 ? 1u : 0u) << label;
  }
}

TEST(CrossEntropy, OfALogitThatIsNoNumberIsNoNumber) {
  auto logits = noise<float>(1, 16);
  logits[3] = NAN;
  float loss = 0;
  cross_entropy_row<false>(Block{}, logits.data(), logits.data(), {10, 16}, {.label = 4}, 1, &loss,
                           nullptr);
  EXPECT_TRUE(std::isnan(loss));
}

// Logits that are masked out count for nothing, even where a lane sees nothing else.
TYPED_TEST(CrossEntropies, OfMaskedLogitsIsThatOfTheOthers) {
  constexpr uint32_t kClasses = 9000;  // every lane has groups of floats, and most of Bf16
  std::vector<TypeParam> logits(kClasses, from_float<TypeParam>(-INFINITY));
  logits[4321] = from_float<TypeParam>(1);
  logits[8999] = from_float<TypeParam>(3);
  float loss = 0;
  uint32_t right = 0;
  cross_entropy_row<false>(Block{}, logits.data(), logits.data(), {kClasses, kClasses},
                           {.label = 8999}, 1, &loss, &right);
  EXPECT_NEAR(loss, std::log(1 + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(right, 1u);
  EXPECT_EQ(to_float(logits[0]), 0.0f);
  EXPECT_NEAR(to_float(logits[4321]), 1 / (1 + std::exp(2.0)), 1e-3);
}

// The largest logit comes late, early or often: the sums are scaled as it grows.
TYPED_TEST(CrossEntropies, OfAVocabularyIsRightWhereverTheLargestLogitsStand) {
  constexpr RowWidth kWidth{20'001, 20'096};
  for (const int direction : {-1, 0, 1}) {
    std::vector<TypeParam> logits(kWidth.stride);
    double total = 0;
    for (uint32_t i = 0; i < kWidth.stride; ++i) {
      const float at = static_cast<float>(direction) * static_cast<float>(i) / 200;
      logits[i] = from_float<TypeParam>(at);
      if (i < kWidth.classes) total += std::exp(static_cast<double>(to_float(logits[i])) - 50);
    }
    std::vector<TypeParam> gradient(kWidth.stride);
    float loss = 0;
    uint32_t right = 2;
    const uint32_t label = 12'345;
    cross_entropy_row<true>(Block{}, logits.data(), gradient.data(), kWidth, {.label = label}, 2,
                            &loss, &right);
    const double log_total = std::log(total) + 50;
    EXPECT_NEAR(loss, log_total - static_cast<double>(to_float(logits[label])), 1e-4);
    EXPECT_EQ(right, 0u);
    for (uint32_t i = 0; i < kWidth.stride; ++i) {
      double expected = 0;
      if (i < kWidth.classes)
        expected = 2 * (std::exp(static_cast<double>(to_float(logits[i])) - log_total) -
                        (i == label ? 1 : 0));
      ASSERT_NEAR(to_float(gradient[i]), expected, tolerance<TypeParam>(expected)) << i;
    }
  }
}

TYPED_TEST(CrossEntropies, HaveTheSameBitsByWideLoadsAndByElements) {
  constexpr RowWidth kWidth{5003, 5056};
  const auto logits = noise<TypeParam>(1, kWidth.stride);
  std::vector<TypeParam> moved(1);
  moved.insert(moved.end(), logits.begin(), logits.end());
  ASSERT_TRUE(are_rows_aligned<TypeParam>(kWidth.stride, logits.data()));
  for (const RowTarget& target : {RowTarget{.label = 5002}, RowTarget{17, 300, 0.25f, 0.1f}}) {
    std::vector<TypeParam> gradient(kWidth.stride), other(kWidth.stride + 1);
    float loss[2];
    uint32_t right[2];
    cross_entropy_row<true>(Block{}, logits.data(), gradient.data(), kWidth, target, 1, loss,
                            right);
    cross_entropy_row<false>(Block{}, moved.data() + 1, other.data() + 1, kWidth, target, 1,
                             loss + 1, right + 1);
    EXPECT_EQ(loss[0], loss[1]);
    EXPECT_EQ(right[0], right[1]);
    EXPECT_EQ(std::memcmp(gradient.data(), other.data() + 1, kWidth.stride * sizeof(TypeParam)), 0);
  }
}

TEST(CrossEntropy, OfMixedLabelsAsksForTheLikelierLabel) {
  std::vector<float> logits(16, 0);
  logits[3] = 5;
  for (const float share : {0.25f, 0.75f}) {
    std::vector<float> gradient(16);
    float loss;
    uint32_t right;
    cross_entropy_row<false>(Block{}, logits.data(), gradient.data(), {10, 16}, {2, 3, share, 0}, 1,
                             &loss, &right);
    EXPECT_EQ(right, share < 0.5f ? 1u : 0u);
  }
}

}  // namespace
}  // namespace lockstep::cuda
