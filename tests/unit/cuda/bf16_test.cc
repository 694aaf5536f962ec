#include "worker/cuda/kernels/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::cuda {
namespace {

float round_trip(float x) {
  return to_float(from_float<Bf16>(x));
}

TEST(Bf16, KeepsEveryValueThatItCanHold) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 value{static_cast<uint16_t>(bits)};
    const float x = to_float(value);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(round_trip(x)));
      continue;
    }
    EXPECT_EQ(from_float<Bf16>(x).bits, value.bits);
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(round_trip(1.0f + 0x1p-9f), 1.0f);             // below the middle
  EXPECT_EQ(round_trip(1.0f + 0x1p-8f), 1.0f);             // a tie, down to even
  EXPECT_EQ(round_trip(1.0f + 3 * 0x1p-8f), 1 + 0x1p-6f);  // a tie, up to even
  EXPECT_EQ(round_trip(1.0f + 0x1p-8f + 0x1p-20f), 1 + 0x1p-7f);
  EXPECT_EQ(round_trip(-1.0f - 3 * 0x1p-8f), -1 - 0x1p-6f);
}

TEST(Bf16, OverflowsToInfinityAndKeepsNaNs) {
  EXPECT_TRUE(std::isinf(round_trip(std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isnan(round_trip(float_of_bits(0x7f800001))));  // its upper half is infinity's
  EXPECT_EQ(from_float<Bf16>(-0.0f).bits, 0x8000);
}

}  // namespace
}  // namespace lockstep::cuda
