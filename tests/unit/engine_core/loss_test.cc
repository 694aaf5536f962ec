#include "worker/engine/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "comm/base/labels.h"
#include "comm/base/prng.h"

namespace lockstep {
namespace {

TEST(Loss, IsSoftmaxCrossEntropyWithItsGradient) {
  const std::vector<float> logits = {1, 2, 3, 0.5f, -1, 0.25f, 100, -100, 0};
  const std::vector<int64_t> labels = {2, 1, 0};
  std::vector<float> gradient(9, 99);
  SlotLoss loss;
  for (size_t b = 0; b < 3; ++b)
    loss.add(softmax_cross_entropy(&logits[3 * b], {.label = labels[b]}, 3, 12, &gradient[3 * b]));
  double expected = 0;
  for (size_t b = 0; b < 3; ++b) {
    double total = 0;
    for (size_t c = 0; c < 3; ++c) total += std::exp(double{logits[3 * b + c]});
    const auto label = static_cast<size_t>(labels[b]);
    expected += std::log(total) - double{logits[3 * b + label]};
    for (size_t c = 0; c < 3; ++c) {
      const double p = std::exp(double{logits[3 * b + c]}) / total;
      EXPECT_NEAR(gradient[3 * b + c], (p - (c == label)) / 12, 1e-8);
    }
  }
  EXPECT_NEAR(loss.sum, expected, 1e-6);
  EXPECT_EQ(loss.correct, 2u);
}

TEST(Loss, OfAnIgnoredLabelIsNothing) {
  const std::vector<float> logits = {1, 2, std::nanf("")};
  std::vector<float> gradient(3, 99);
  const SlotLoss loss = softmax_cross_entropy(
      logits.data(), {.label = kIgnoredLabel, .smoothing = 0.1f}, 3, 1, gradient.data());
  EXPECT_EQ(loss.sum, 0);
  EXPECT_EQ(loss.correct, 0u);
  EXPECT_EQ(gradient, std::vector<float>(3, 0));
}

TEST(Loss, OfATieTheFirstCounts) {
  const std::vector<float> logits = {1, 1};
  EXPECT_EQ(softmax_cross_entropy(logits.data(), {.label = 0}, 2, 1, nullptr).correct, 1u);
  EXPECT_EQ(softmax_cross_entropy(logits.data(), {.label = 1}, 2, 1, nullptr).correct, 0u);
}

TEST(Loss, OfLogitsThatAreNotNumbersIsNotANumber) {
  for (const size_t place : {0, 1, 17, 1024, 1030}) {
    std::vector<float> logits(1031, 0.5f);
    logits[place] = std::nanf("");
    for (const RowTarget target : {RowTarget{.label = 3}, RowTarget{3, 4, 0.5f, 0.1f}})
      EXPECT_TRUE(std::isnan(softmax_cross_entropy(logits.data(), target, 1031, 1, nullptr).sum));
  }
}

// Rows end within, at and after a vector and a block. Logits go from next to nothing upwards, and
// their differences are floats.
TEST(Loss, OfRowsOfAnyLengthIsWhatDoublesGive) {
  for (const size_t classes : {1, 15, 16, 17, 1023, 1024, 1025, 50257}) {
    Prng prng(stream_key({7, classes}));
    std::vector<float> logits(classes), gradient(classes);
    for (float& logit : logits) logit = static_cast<float>(prng.below(130 * 1024)) / 1024 - 110;
    const auto label = static_cast<int64_t>(prng.below(classes));
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    const SlotLoss loss =
        softmax_cross_entropy(logits.data(), {.label = label}, classes, 1, gradient.data());
    EXPECT_NEAR(loss.sum, std::log(total) - double{logits[static_cast<size_t>(label)]}, 1e-5);
    gradient[static_cast<size_t>(label)] += 1;
    for (size_t c = 0; c < classes; ++c) {
      const double p = std::exp(double{logits[c]}) / total;
      const double rounded = c == static_cast<size_t>(label) ? 6e-8 : 0;  // by taking one off
      ASSERT_NEAR(gradient[c], p, p * 5e-7 + rounded + 1e-37) << c << " of " << classes;
    }
    EXPECT_EQ(softmax_cross_entropy(logits.data(), {.label = label}, classes, 1, nullptr).sum,
              loss.sum);
  }
}

// Takes labels that differ and labels that are the same, next to nothing of either, with and
// without smoothing.
TEST(Loss, OfMixedAndSmoothedLabelsIsTheSumOverAllClassesOfWhatIsWantedOfEach) {
  constexpr size_t kClasses = 37;
  Prng prng(5);
  for (const RowTarget& target :
       {RowTarget{3, 36, 0.75f, 0}, RowTarget{3, 3, 0.25f, 0}, RowTarget{0, 9, 0x1p-24f, 0},
        RowTarget{0, 9, 0, 0.3f}, RowTarget{.label = 5, .smoothing = 0.1f},
        RowTarget{36, 0, 0.5f, 0.9f}}) {
    std::vector<float> logits(kClasses), gradient(kClasses);
    for (float& logit : logits) logit = static_cast<float>(prng.below(8 * 1024)) / 1024 - 3;
    std::vector<double> wanted(kClasses, double{target.smoothing} / kClasses);
    const double whole = 1 - double{target.smoothing};
    wanted[static_cast<size_t>(target.label)] += whole * double{target.share};
    wanted[static_cast<size_t>(target.other)] += whole * (1 - double{target.share});
    double total = 0, expected = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    for (size_t c = 0; c < kClasses; ++c)
      expected += wanted[c] * (std::log(total) - double{logits[c]});
    const SlotLoss loss =
        softmax_cross_entropy(logits.data(), target, kClasses, 8, gradient.data());
    EXPECT_NEAR(loss.sum, expected, 1e-6);
    for (size_t c = 0; c < kClasses; ++c)
      EXPECT_NEAR(gradient[c], (std::exp(double{logits[c]}) / total - wanted[c]) / 8, 2e-8) << c;
  }
}

TEST(Loss, APredictionIsRightThatIsTheLargerSharesLabel) {
  const std::vector<float> logits = {1, 2};
  const auto is_right = [&](float share) {
    return softmax_cross_entropy(logits.data(), {0, 1, share, 0}, 2, 1, nullptr).correct == 1;
  };
  EXPECT_TRUE(is_right(0.4f));
  EXPECT_FALSE(is_right(0.5f)) << "of two halves the sample's own counts";
  EXPECT_FALSE(is_right(0.6f));
}

}  // namespace
}  // namespace lockstep
