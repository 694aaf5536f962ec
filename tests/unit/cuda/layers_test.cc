// The row and element functions of the kernels against straightforward references in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "comm/base/prng.h"
#include "worker/cuda/column_sums.h"
#include "worker/cuda/cross_entropy.h"
#include "worker/cuda/gelu.h"
#include "worker/cuda/layer_norm.h"

namespace lockstep::cuda {
namespace {

using Warp = SerialTeam<32>;
using Block = SerialTeam<256>;

template <typename T>
std::vector<T> noise(uint64_t key, uint64_t n, float offset = 0) {
  std::vector<T> out;
  for (uint64_t i = 0; i < n; ++i)
    out.push_back(
        from_float<T>(offset + static_cast<float>(stream_value(key, i) % 4001) / 1000 - 2));
  return out;
}

// A result of type T may be off by its own rounding, and a little for the float sums before it.
template <typename T>
double tolerance(double expected) {
  const double half_step = std::is_same_v<T, Bf16> ? 0x1p-8 : 0x1p-24;
  return std::abs(expected) * half_step + 4e-6;
}

template <typename T>
class Layers : public ::testing::Test {};
using Types = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(Layers, Types);

// Everything of one normalised row, in double.
struct NormReference {
  std::vector<double> normal;
  double rstd = 0;

  template <typename T>
  NormReference(const T* x, uint32_t n, double eps) {
    double mean = 0;
    for (uint32_t i = 0; i < n; ++i) mean += static_cast<double>(to_float(x[i])) / n;
    double variance = 0;
    for (uint32_t i = 0; i < n; ++i)
      variance += std::pow(static_cast<double>(to_float(x[i])) - mean, 2) / n;
    rstd = 1 / std::sqrt(variance + eps);
    for (uint32_t i = 0; i < n; ++i)
      normal.push_back((static_cast<double>(to_float(x[i])) - mean) * rstd);
  }
};

TYPED_TEST(Layers, NormaliseTheRoundedSumOfStreamAndBranch) {
  constexpr uint32_t kRows = 3;
  constexpr uint32_t n = 101;  // no multiple of the lanes
  const auto x = noise<TypeParam>(1, kRows * n, 5);
  const auto branch = noise<TypeParam>(2, kRows * n);
  const auto gain = noise<float>(3, n);
  const auto bias = noise<float>(4, n);
  std::vector<TypeParam> stream(kRows * n), y(kRows * n);
  std::vector<float> mean(kRows), rstd(kRows);
  const LayerNormForward<TypeParam> op{x.data(),    branch.data(), gain.data(),
                                       bias.data(), 1e-5f,         stream.data(),
                                       y.data(),    mean.data(),   rstd.data()};
  for (uint32_t row = 0; row < kRows; ++row) layer_norm_row(Warp{}, op, row, n);
  for (uint32_t row = 0; row < kRows; ++row) {
    const NormReference expected(stream.data() + row * n, n, 1e-5);
    EXPECT_NEAR(rstd[row], expected.rstd, 1e-5 * expected.rstd);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t at = row * n + i;
      EXPECT_EQ(to_float(stream[at]),
                to_float(from_float<TypeParam>(to_float(x[at]) + to_float(branch[at]))));
      const double value = expected.normal[i] * gain[i] + bias[i];
      EXPECT_NEAR(to_float(y[at]), value, tolerance<TypeParam>(value) + 4e-6);
    }
  }
}

TEST(LayerNorm, WithoutABranchWorksInPlaceOnTheStream) {
  constexpr uint32_t n = 64;
  auto x = noise<float>(1, n);
  const auto before = x;
  const std::vector<float> gain(n, 1), bias(n, 0);
  std::vector<float> y(n);
  float mean, rstd;
  layer_norm_row(Warp{},
                 LayerNormForward<float>{x.data(), nullptr, gain.data(), bias.data(), 1e-5f,
                                         x.data(), y.data(), &mean, &rstd},
                 0, n);
  EXPECT_EQ(x, before);
  EXPECT_NEAR(Warp{}.sum(n, [&](uint32_t i) { return y[i]; }), 0, 1e-4);
}

// dx by the textbook: through mean and variance, and past the normalisation.
TYPED_TEST(Layers, GiveLayerNormsGradients) {
  constexpr uint32_t kRows = 2 * kColumnChunk + 7;
  constexpr uint32_t n = 37;
  const auto stream = noise<TypeParam>(1, kRows * n, 1);
  const auto dy = noise<TypeParam>(2, kRows * n);
  const auto d_stream = noise<TypeParam>(3, kRows * n);
  const auto gain = noise<float>(4, n);
  std::vector<float> mean(kRows), rstd(kRows), bias(n, 0);
  std::vector<TypeParam> copy(kRows * n), y(kRows * n), dx(kRows * n);
  const LayerNormForward<TypeParam> forward{stream.data(), nullptr,     gain.data(),
                                            bias.data(),   1e-5f,       copy.data(),
                                            y.data(),      mean.data(), rstd.data()};
  const LayerNormBackward<TypeParam> op{dy.data(),   d_stream.data(), stream.data(), gain.data(),
                                        mean.data(), rstd.data(),     dx.data()};
  std::vector<double> d_gain(n), d_bias(n);
  for (uint32_t row = 0; row < kRows; ++row) {
    layer_norm_row(Warp{}, forward, row, n);
    layer_norm_backward_row(Warp{}, op, row, n);
    const NormReference at(stream.data() + row * n, n, 1e-5);
    double mean_scaled = 0, mean_product = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const double g = to_float(dy[row * n + i]);
      mean_scaled += g * gain[i] / n;
      mean_product += g * gain[i] * at.normal[i] / n;
      d_gain[i] += g * at.normal[i];
      d_bias[i] += g;
    }
    for (uint32_t i = 0; i < n; ++i) {
      const double g = to_float(dy[row * n + i]);
      const double expected = at.rstd * (g * gain[i] - mean_scaled - at.normal[i] * mean_product) +
                              to_float(d_stream[row * n + i]);
      EXPECT_NEAR(to_float(dx[row * n + i]), expected, tolerance<TypeParam>(expected) + 4e-6);
    }
  }
  const auto chunks = column_chunks(kRows);
  ASSERT_EQ(chunks, 3u);
  std::vector<float> gains(chunks * n), biases(chunks * n);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    for (uint32_t i = 0; i < n; ++i) {
      gains[chunk * n + i] = chunk_gain_gradient(op, kRows, n, chunk, i);
      biases[chunk * n + i] = chunk_sum(op.dy, kRows, n, chunk, i);
    }
  }
  for (uint32_t i = 0; i < n; ++i) {
    EXPECT_NEAR(sum_of_chunks(gains.data(), chunks, n, i), d_gain[i], 2e-4);
    EXPECT_NEAR(sum_of_chunks(biases.data(), chunks, n, i), d_bias[i], 2e-4);
  }
}

TEST(Gelu, IsTheTanhApproximationAndItsSlope) {
  const auto exact = [](double z) {
    return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
  };
  for (double z = -12; z <= 12; z += 0.037) {
    EXPECT_NEAR(gelu(static_cast<float>(z)), exact(z), 1e-6 * (1 + std::abs(z))) << z;
    const double slope = (exact(z + 1e-5) - exact(z - 1e-5)) / 2e-5;
    EXPECT_NEAR(gelu_derivative(static_cast<float>(z)), slope, 2e-6) << z;
  }
}

TYPED_TEST(Layers, GiveCrossEntropyAndItsGradientInPlace) {
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
  cross_entropy_row(Block{}, logits.data(), logits.data(), kWidth, {.label = kLabel}, kScale,
                    &loss);
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

TYPED_TEST(Layers, GiveTheLossOfMixedAndSmoothedLabelsInPlace) {
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
    cross_entropy_row(Block{}, logits.data(), logits.data(), kWidth, target, kScale, &loss);
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
    cross_entropy_row(Block{}, logits.data(), logits.data(), {10, 16}, {2, 10, share, 0}, 1, &loss);
    EXPECT_EQ(std::isnan(loss), share < 1);
  }
}

TEST(CrossEntropy, OfAnIgnoredRowIsNothingAndOfAWrongLabelNoNumber) {
  for (const int64_t label : {kIgnoredLabel, int64_t{-1}, int64_t{10}}) {
    auto logits = noise<Bf16>(1, 16);
    float loss = 1;
    cross_entropy_row(Block{}, logits.data(), logits.data(), {10, 16}, {.label = label}, 1, &loss);
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
  for (const int64_t label : {0, 1, 2, 3, -1, 4})
    EXPECT_EQ(is_right_row(Block{}, logits, width, label), label == 1) << label;
}

TEST(CrossEntropy, OfALogitThatIsNoNumberIsNoNumber) {
  auto logits = noise<float>(1, 16);
  logits[3] = NAN;
  float loss = 0;
  cross_entropy_row(Block{}, logits.data(), logits.data(), {10, 16}, {.label = 4}, 1, &loss);
  EXPECT_TRUE(std::isnan(loss));
}

}  // namespace
}  // namespace lockstep::cuda
