#include "worker/optim/grad_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "comm/base/prng.h"

namespace lockstep {
namespace {

std::vector<float> noise(uint64_t n) {
  std::vector<float> out;
  for (uint64_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(stream_value(7, i) % 2001) / 1000 - 1);
  return out;
}

TEST(GradNorm, IsTheSumOfTheSquaresOfEveryRange) {
  const std::vector<float> values = noise(3 * kNormBlock + 21);
  const NormRange ranges[] = {{0, 2 * kNormBlock + 5}, {2 * kNormBlock + 16, kNormBlock}};
  double expected = 0;
  for (const NormRange& r : ranges) {
    for (uint64_t i = r.start; i < r.start + r.length; ++i)
      expected += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  EXPECT_NEAR(sum_of_squares(values.data(), ranges), expected, 1e-5 * expected);
}

// Where a parameter lies in the flat buffer depends on the layout; its norm may not.
TEST(GradNorm, HasTheSameBitsWhereverTheParameterLies) {
  const std::vector<float> values = noise(kNormBlock + 77);
  const NormRange here[] = {{0, values.size()}};
  const double expected = sum_of_squares(values.data(), here);
  for (const uint64_t shift : {1u, 16u, 33u}) {
    std::vector<float> moved(shift, 5.0f);
    moved.insert(moved.end(), values.begin(), values.end());
    const NormRange there[] = {{shift, values.size()}};
    EXPECT_EQ(sum_of_squares(moved.data(), there), expected) << shift;
  }
}

TEST(GradNorm, ClipsOnlyWhatIsTooLong) {
  EXPECT_EQ(clip_scale(4, 2.5), 1.0f);
  EXPECT_NEAR(clip_scale(100, 2.5), 0.25, 1e-6);
  EXPECT_EQ(clip_scale(0, 1), 1.0f);
  EXPECT_EQ(clip_scale(std::nan(""), 1), 1.0f);
  EXPECT_EQ(clip_scale(std::numeric_limits<double>::infinity(), 1), 1.0f);
}

}  // namespace
}  // namespace lockstep
