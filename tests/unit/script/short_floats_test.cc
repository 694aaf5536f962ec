#include "worker/script/short_floats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

std::vector<float> widened(const std::vector<uint16_t>& bits, DType dtype) {
  std::vector<float> out(bits.size(), 100);
  EXPECT_TRUE(widen_floats(bits.data(), dtype, bits.size(), Into::kReplace, out.data()).is_ok());
  return out;
}

TEST(ShortFloats, HalfNumbersOfEveryKindWidenExactly) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      widened({0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0x7c00, 0xfc00, 0x0000},
              DType::kF16),
      ::testing::ElementsAre(1.0f, -2.0f, 65504.0f, std::ldexp(1.0f, -14), std::ldexp(1.0f, -24),
                             -std::ldexp(1023.0f, -24), inf, -inf, 0.0f));
  EXPECT_TRUE(std::isnan(widened({0x7e01}, DType::kF16)[0]));
  EXPECT_TRUE(std::signbit(widened({0x8000}, DType::kF16)[0]));
}

TEST(ShortFloats, BrainNumbersAreTheUpperHalf) {
  EXPECT_THAT(widened({0x3f80, 0xc040, 0x0001}, DType::kBF16),
              ::testing::ElementsAre(1.0f, -3.0f, std::ldexp(1.0f, -133)));
  EXPECT_TRUE(std::isnan(widened({0x7fc0}, DType::kBF16)[0]));
}

TEST(ShortFloats, ASecondGradientIsAdded) {
  std::vector<float> out = {1, 2};
  const std::vector<float> more = {0.5f, -2};
  EXPECT_TRUE(widen_floats(more.data(), DType::kF32, 2, Into::kAdd, out.data()).is_ok());
  const std::vector<uint16_t> halves = {0x3c00, 0x3c00};
  EXPECT_TRUE(widen_floats(halves.data(), DType::kF16, 2, Into::kAdd, out.data()).is_ok());
  EXPECT_THAT(out, ::testing::ElementsAre(2.5f, 1.0f));
}

TEST(ShortFloats, OtherTypesAreRefused) {
  float out = 0;
  const double in = 1;
  EXPECT_THAT(widen_floats(&in, DType::kF64, 1, Into::kReplace, &out),
              FailsWith(Code::kUsage, Names("F64"), Advises("float32")));
}

}  // namespace
}  // namespace lockstep
