#include "worker/engine/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

TEST(Loss, IsSoftmaxCrossEntropyWithItsGradient) {
  const std::vector<float> logits = {1, 2, 3, 0.5f, -1, 0.25f, 100, -100, 0};
  const std::vector<int64_t> labels = {2, 1, 0};
  std::vector<float> gradient(9, 99);
  const SlotLoss loss =
      softmax_cross_entropy(logits.data(), labels.data(), 3, 3, 12, gradient.data());
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

TEST(Loss, OfATieTheFirstCounts) {
  const std::vector<float> logits = {1, 1};
  const int64_t first = 0, second = 1;
  EXPECT_EQ(softmax_cross_entropy(logits.data(), &first, 1, 2, 1, nullptr).correct, 1u);
  EXPECT_EQ(softmax_cross_entropy(logits.data(), &second, 1, 2, 1, nullptr).correct, 0u);
}

TEST(Loss, OfLogitsThatAreNotNumbersIsNotANumber) {
  for (const size_t place : {0, 1, 17, 1024, 1030}) {
    std::vector<float> logits(1031, 0.5f);
    logits[place] = std::nanf("");
    const int64_t label = 3;
    EXPECT_TRUE(std::isnan(softmax_cross_entropy(logits.data(), &label, 1, 1031, 1, nullptr).sum));
  }
}

// Rows that end within, at and behind a vector and a block; logits from next to nothing upwards,
// whose differences are floats.
TEST(Loss, OfRowsOfAnyLengthIsWhatDoublesGive) {
  for (const size_t classes : {1, 15, 16, 17, 1023, 1024, 1025, 50257}) {
    Prng prng(stream_key({7, classes}));
    std::vector<float> logits(classes), gradient(classes);
    for (float& logit : logits) logit = static_cast<float>(prng.below(130 * 1024)) / 1024 - 110;
    const auto label = static_cast<int64_t>(prng.below(classes));
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    const SlotLoss loss =
        softmax_cross_entropy(logits.data(), &label, 1, classes, 1, gradient.data());
    EXPECT_NEAR(loss.sum, std::log(total) - double{logits[static_cast<size_t>(label)]}, 1e-5);
    gradient[static_cast<size_t>(label)] += 1;
    for (size_t c = 0; c < classes; ++c) {
      const double p = std::exp(double{logits[c]}) / total;
      const double rounded = c == static_cast<size_t>(label) ? 6e-8 : 0;  // by taking one off
      ASSERT_NEAR(gradient[c], p, p * 5e-7 + rounded + 1e-37) << c << " of " << classes;
    }
    EXPECT_EQ(softmax_cross_entropy(logits.data(), &label, 1, classes, 1, nullptr).sum, loss.sum);
  }
}

}  // namespace
}  // namespace lockstep
