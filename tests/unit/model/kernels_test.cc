// The models' own kernels against the plainest code that says the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "comm/base/prng.h"
#include "worker/model/dropout_mask.h"
#include "worker/model/relu_pool_kernel.h"
#include "worker/model/spec.h"

namespace lockstep {
namespace {

// Small whole numbers, so that equal and non-positive values are common.
std::vector<float> values(uint64_t n, uint64_t key) {
  std::vector<float> out;
  for (uint64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(stream_value(key, i) % 9) - 5);
  return out;
}

TEST(ReluPool, IsReluThenPoolingForwardAndBackward) {
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{
           {2, 2}, {3, 5}, {11, 11}, {26, 26}, {7, 70}, {4, 5000}}) {
    const PoolShape shape{3, height, width};
    const int64_t rows = height / 2, columns = width / 2;
    const auto in = values(static_cast<uint64_t>(3 * height * width), 5);
    const auto outputs = static_cast<size_t>(3 * rows * columns);
    std::vector<float> out(outputs);
    std::vector<uint8_t> chosen(outputs);
    relu_pool_forward(in.data(), shape, out.data(), chosen.data());
    const auto gradient = values(outputs, 6);
    std::vector<float> in_gradient(in.size(), 99);
    relu_pool_backward(gradient.data(), chosen.data(), shape, in_gradient.data());

    std::vector<float> expected_gradient(in.size(), 0);
    for (int64_t o = 0; o < static_cast<int64_t>(outputs); ++o) {
      const int64_t plane = o / (rows * columns), r = o / columns % rows, c = o % columns;
      float largest = 0;
      int64_t place = -1;
      for (const int64_t k : {0, 1, 2, 3}) {
        const int64_t i = (plane * height + 2 * r + k / 2) * width + 2 * c + k % 2;
        if (in[static_cast<size_t>(i)] > largest) {
          largest = in[static_cast<size_t>(i)];
          place = i;
        }
      }
      EXPECT_EQ(out[static_cast<size_t>(o)], largest);
      if (place >= 0)
        expected_gradient[static_cast<size_t>(place)] = gradient[static_cast<size_t>(o)];
    }
    EXPECT_EQ(in_gradient, expected_gradient) << height << "x" << width;
  }
}

TEST(ReluPool, NanIsNotSwallowed) {
  for (size_t k = 0; k < 4; ++k) {
    std::vector<float> in(4, 1);
    in[k] = std::numeric_limits<float>::quiet_NaN();
    float out = 0;
    uint8_t chosen = 0;
    relu_pool_forward(in.data(), {1, 2, 2}, &out, &chosen);
    EXPECT_TRUE(std::isnan(out)) << k;
  }
}

TEST(DropoutMask, DependsOnKeyAndPlaceOnlyAndKeepsTheExpectedShare) {
  constexpr uint64_t n = 100'001;
  std::vector<float> mask(n), part(10), other(n);
  fill_dropout_mask(3, 0.25, mask.data(), n);
  fill_dropout_mask(3, 0.25, part.data(), part.size());
  fill_dropout_mask(4, 0.25, other.data(), n);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), mask.begin()));
  EXPECT_NE(mask, other);
  const auto dropped = std::count(mask.begin(), mask.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped) / n, 0.25, 0.006);  // four standard deviations
  EXPECT_EQ(std::count(mask.begin(), mask.end(), static_cast<float>(1 / 0.75)),
            static_cast<int64_t>(n) - dropped);
}

TEST(InitialWeights, DependOnSeedAndIndexOnlyAndFillTheirRange) {
  LayoutBuilder builder;
  builder.add_linear("fc1", 100, 50);
  const ModelLayout layout = builder.take();
  const ParameterSpec& weight = layout.parameters[0];
  EXPECT_EQ(weight.elements(), 5'000u);
  std::vector<float> a(5'000), b(5'000), c(5'000), d(5'000);
  init_parameter(weight, 1, 0, a.data());
  init_parameter(weight, 1, 0, b.data());
  init_parameter(weight, 2, 0, c.data());
  init_parameter(weight, 1, 1, d.data());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_NE(a, d);
  double sum = 0;
  for (const float x : a) {
    EXPECT_LE(std::abs(x), 0.1f);  // 1 / sqrt(100)
    sum += x;
  }
  EXPECT_NEAR(sum / 5'000, 0, 0.004);  // five standard deviations
}

}  // namespace
}  // namespace lockstep
