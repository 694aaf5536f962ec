// The arithmetic of fp8: what each value becomes, scales, and the cast of a tensor. fp8_linear_test
// compares every value with LibTorch's.
#include "worker/cuda/kernels/fp8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "comm/base/prng.h"
#include "tests/support/fails_with.h"
#include "worker/cuda/fp8_support.h"
#include "worker/cuda/kernels/fp8_host.h"

namespace lockstep::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename F>
class Fp8 : public ::testing::Test {};
using Fp8Types = ::testing::Types<E4M3, E5M2>;
TYPED_TEST_SUITE(Fp8, Fp8Types);

template <typename F>
float there_and_back(float x) {
  return float_of_fp8<F>(fp8_bits<F>(x));
}

TYPED_TEST(Fp8, KeepsEveryValueThatItCanHold) {
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    const float x = float_of_fp8<TypeParam>(static_cast<uint8_t>(bits));
    if (std::isfinite(x)) {
      EXPECT_EQ(fp8_bits<TypeParam>(x), bits);
    } else if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(there_and_back<TypeParam>(x)));
    }
  }
}

// Between each two neighbours: the middle goes to the even one, and all else to the nearer one.
TYPED_TEST(Fp8, RoundsToTheNearestAndTiesToEven) {
  for (uint8_t bits = 0; bits < TypeParam::kLargest; ++bits) {
    const float low = float_of_fp8<TypeParam>(bits);
    const float high = float_of_fp8<TypeParam>(bits + 1);
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(fp8_bits<TypeParam>(middle), bits + bits % 2) << low;
    EXPECT_EQ(fp8_bits<TypeParam>(std::nextafter(middle, 0.0f)), bits) << low;
    EXPECT_EQ(fp8_bits<TypeParam>(-std::nextafter(middle, kInfinity)), (bits + 1) | 0x80) << low;
  }
}

TYPED_TEST(Fp8, SaturatesAndKeepsNaNs) {
  const float largest = TypeParam::kLargest == 0x7e ? 448.0f : 57344.0f;
  EXPECT_EQ(float_of_fp8<TypeParam>(TypeParam::kLargest), largest);
  for (const float x : {largest, 1.04f * largest, 2 * largest, 3e38f, kInfinity}) {
    EXPECT_EQ(there_and_back<TypeParam>(x), largest) << x;
    EXPECT_EQ(there_and_back<TypeParam>(-x), -largest) << x;
  }
  EXPECT_TRUE(std::isnan(there_and_back<TypeParam>(std::nanf(""))));
  EXPECT_EQ(fp8_bits<TypeParam>(-0.0f), 0x80);
}

// By definition, in double.
TYPED_TEST(Fp8, TheScaleIsTheLargestPowerOfTwoWithWhichNothingExceedsTheType) {
  const double most = float_of_fp8<TypeParam>(TypeParam::kLargest);
  for (uint32_t bits = 1; bits < 0x7f80; ++bits) {  // every magnitude of bf16
    const Bf16 largest{static_cast<uint16_t>(bits)};
    const float scale = fp8_scale<TypeParam>(magnitude_bits(largest));
    int exponent = 0;
    ASSERT_EQ(std::frexp(scale, &exponent), 0.5f) << bits;
    ASSERT_LE(static_cast<double>(to_float(largest)) * scale, most) << bits;
    ASSERT_TRUE(scale == 0x1p126f || static_cast<double>(to_float(largest)) * scale * 2 > most)
        << bits;
    ASSERT_TRUE(std::isnormal(1 / scale)) << bits;
  }
  EXPECT_EQ(fp8_scale<TypeParam>(0), 1);
  EXPECT_TRUE(std::isnan(fp8_scale<TypeParam>(float_bits(kInfinity))));
  EXPECT_TRUE(std::isnan(fp8_scale<TypeParam>(0x7fff0000)));
}

struct CastTensor {
  CastTensor(std::vector<float> values, uint32_t rows, uint32_t columns, bool is_gradient) {
    padded = (rows + 15) / 16 * 16;
    for (const float value : values) x.push_back(from_float<Bf16>(value));
    plain.resize(uint64_t{padded} * columns, 0xee);
    transposed = plain;
    fp8_cast_on_host({.x = x.data(),
                      .rows = rows,
                      .columns = columns,
                      .padded_rows = padded,
                      .is_gradient = is_gradient,
                      .largest = &largest,
                      .inverse_scale = &inverse_scale,
                      .plain = plain.data(),
                      .transposed = transposed.data()});
  }
  std::vector<Bf16> x;
  uint32_t padded = 0;
  uint32_t largest = 0xdeadbeef;
  float inverse_scale = 0;
  std::vector<uint8_t> plain;
  std::vector<uint8_t> transposed;
};

std::vector<float> some_values(uint64_t count, uint64_t seed = 1) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] =
        static_cast<float>(static_cast<int64_t>(mix64(seed + i) >> 40) - (1 << 23)) * 0x1p-20f;
  return values;
}

TEST(Fp8Cast, OfTilesThatAreNotWholeIsTheSameInBothOrders) {
  for (const auto& [rows, columns] :
       {std::pair(1u, 16u), std::pair(33u, 48u), std::pair(64u, 32u), std::pair(70u, 80u)}) {
    for (const bool is_gradient : {false, true}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << columns);
      const CastTensor cast(some_values(uint64_t{rows} * columns), rows, columns, is_gradient);
      const float scale = 1 / cast.inverse_scale;
      for (uint32_t r = 0; r < cast.padded; ++r) {
        for (uint32_t c = 0; c < columns; ++c) {
          uint8_t expected = 0;
          if (r < rows) {
            const float x = to_float(cast.x[r * columns + c]) * scale;
            expected = is_gradient ? fp8_bits<E5M2>(x) : fp8_bits<E4M3>(x);
          }
          ASSERT_EQ(cast.plain[r * columns + c], expected) << r << "," << c;
          ASSERT_EQ(cast.transposed[c * cast.padded + r], expected) << r << "," << c;
        }
      }
    }
  }
}

TEST(Fp8Cast, TheLargestValueIsTheSameInAnyOrderAndInGroups) {
  std::vector<float> values = some_values(64 * 16);
  values[77] = -31.5f;
  const CastTensor one(values, 64, 16, false);
  EXPECT_EQ(one.largest, float_bits(31.5f));
  EXPECT_EQ(one.inverse_scale, 0x1p-3f);  // 252 of 448
  for (uint64_t turn = 1; turn < 6; ++turn) {
    std::rotate(values.begin(), values.begin() + 101, values.end());
    const CastTensor other(values, 64, 16, false);
    EXPECT_EQ(other.largest, one.largest);
    uint32_t by_groups = 0;  // as the kernel looks
    for (uint32_t g = 0; g < 64 * 16 / kGroup<Bf16>; ++g)
      by_groups = larger(largest_of(load_group<false>(other.x.data(), g, 64 * 16)), by_groups);
    EXPECT_EQ(by_groups, one.largest);
  }
}

TEST(Fp8Cast, ZerosAndDenormalsStayNumbers) {
  const CastTensor zeros(std::vector<float>(16 * 16, -0.0f), 16, 16, false);
  EXPECT_EQ(zeros.inverse_scale, 1);
  EXPECT_THAT(zeros.plain, ::testing::Each(0x80));
  for (const bool is_gradient : {false, true}) {
    const CastTensor tiny(std::vector<float>(16 * 16, 0x1p-130f), 16, 16, is_gradient);
    EXPECT_EQ(tiny.inverse_scale, 0x1p-126f);
    const float back =
        is_gradient ? float_of_fp8<E5M2>(tiny.plain[0]) : float_of_fp8<E4M3>(tiny.plain[0]);
    EXPECT_EQ(back, 0x1p-4f);
  }
}

TEST(Fp8Cast, OneValueThatIsNoNumberMakesAllOfThemNone) {
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    std::vector<float> values = some_values(16 * 16);
    values[200] = bad;
    const CastTensor cast(values, 16, 16, true);
    EXPECT_TRUE(std::isnan(cast.inverse_scale));
    for (const uint8_t bits : cast.plain) EXPECT_TRUE(std::isnan(float_of_fp8<E5M2>(bits)));
  }
}

TEST(Fp8Support, IsRefusedByNameBeforeComputeCapability89) {
  const auto status = [](const char* name, int major, int minor) {
    return check_fp8({.name = name, .major = major, .minor = minor}, 3);
  };
  EXPECT_THAT(status("NVIDIA A100-SXM4-80GB", 8, 0),
              FailsWith(Code::kConfig, Names("GPU 3", "NVIDIA A100-SXM4-80GB", "8.0", "8.9"),
                        Advises("train.precision=bf16")));
  EXPECT_FALSE(status("NVIDIA A10", 8, 6).is_ok());
  for (const auto& [major, minor] : {std::pair(8, 9), std::pair(9, 0), std::pair(12, 0)})
    EXPECT_TRUE(status("a newer one", major, minor).is_ok());
}

}  // namespace
}  // namespace lockstep::cuda
