#include "worker/engine/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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
  const std::vector<float> logits = {1, std::nanf("")};
  const int64_t label = 0;
  EXPECT_TRUE(std::isnan(softmax_cross_entropy(logits.data(), &label, 1, 2, 1, nullptr).sum));
}

}  // namespace
}  // namespace lockstep
