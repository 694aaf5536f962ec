// The row and element functions of the kernels against straightforward references in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/unit/cuda/layer_values.h"
#include "worker/cuda/kernels/column_sums.h"
#include "worker/cuda/kernels/gelu_columns.h"
#include "worker/cuda/kernels/layer_norm_wide.h"

namespace lockstep::cuda {
namespace {

using Warp = SerialTeam<32>;

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

// A warp holds rows of up to 1,024 elements, and reads wider rows again.
constexpr uint32_t kEach = 8;

template <bool Aligned, typename T>
void norm(const LayerNormForward<T>& op, uint32_t rows, uint32_t n) {
  for (uint32_t row = 0; row < rows; ++row) {
    if (n <= 1024)
      layer_norm_row<kEach, Aligned>(Warp{}, op, row, n);
    else
      layer_norm_wide_row(Warp{}, op, row, n);
  }
}

// The sums of gain and bias as the kernel that also makes dx sums them: (2, chunks, n).
template <bool Aligned, typename T>
std::vector<float> norm_backward(const LayerNormBackward<T>& op, uint32_t rows, uint32_t n) {
  const uint64_t chunks = column_chunks(rows);
  std::vector<float> partials(2 * chunks * n);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    std::vector<float> sums[2][kRowLanes];
    for (auto& of : sums) std::fill(std::begin(of), std::end(of), std::vector<float>(n + 8));
    for (uint64_t row = chunk * kColumnChunk; row < chunk_end(chunk, rows); ++row) {
      const uint64_t lane = row % kRowLanes;
      layer_norm_backward_row<kEach, Aligned>(
          Warp{}, op, row, n, [&](uint32_t k, uint32_t j, float dy, float normal) {
            const uint32_t i = k * kGroup<T> + j;
            NormColumns<T>::add_term(sums[0][lane][i], sums[1][lane][i], dy, normal);
          });
    }
    for (uint32_t s = 0; s < 2; ++s) {
      for (uint32_t i = 0; i < n; ++i)
        partials[(s * chunks + chunk) * n + i] =
            (sums[s][0][i] + sums[s][2][i]) + (sums[s][1][i] + sums[s][3][i]);
    }
  }
  return partials;
}

template <bool Aligned, typename Source>
std::vector<float> walk(const Source& source, uint32_t rows, uint32_t n) {
  using T = typename Source::T;
  std::vector<float> partials(std::max(1u, Source::kSums) * column_chunks(rows) * n);
  for (uint64_t tile = 0; tile < column_tiles<T>(rows, n); ++tile) {
    const auto [chunk, first] = tile_at<T>(tile, n);
    for (uint32_t g = first; g < std::min(first + kWarp, group_count<T>(n)); ++g)
      sum_tile_group<Aligned>(source, rows, n, chunk, g, partials.data());
  }
  return partials;
}

TYPED_TEST(Layers, NormaliseTheRoundedSumOfStreamAndBranch) {
  constexpr uint32_t kRows = 3;
  for (const uint32_t n : {101u, 1024u, 2100u}) {  // no multiple of the lanes; full; too wide
    const auto x = noise<TypeParam>(1, kRows * n, 5);
    const auto branch = noise<TypeParam>(2, kRows * n);
    const auto gain = noise<float>(3, n);
    const auto bias = noise<float>(4, n);
    std::vector<TypeParam> stream(kRows * n), y(kRows * n);
    std::vector<float> mean(kRows), rstd(kRows);
    norm<false>(
        LayerNormForward<TypeParam>{x.data(), branch.data(), gain.data(), bias.data(), 1e-5f,
                                    stream.data(), y.data(), mean.data(), rstd.data()},
        kRows, n);
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
}

// The order that team.h and groups.h document, spelled out: lane l adds its groups l, l + 32, ...
// one element after the other, then the upper half of the lanes goes onto the lower half.
float sum_in_lanes(const std::vector<float>& values) {
  float lanes[32] = {};
  for (size_t i = 0; i < values.size(); ++i) lanes[i / kGroup<float> % 32] += values[i];
  for (uint32_t half = 16; half > 0; half /= 2) {
    for (uint32_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

TEST(LayerNorm, AddsARowInTheOrderOfItsLanes) {
  bool shows_the_order = false;
  for (const uint32_t n : {768u, 771u, 1024u}) {
    const auto x = noise<float>(3, n);
    const std::vector<float> gain(n, 1), bias(n, 0);
    std::vector<float> stream(n), y(n);
    float mean, rstd;
    norm<false>(LayerNormForward<float>{x.data(), nullptr, gain.data(), bias.data(), 1e-5f,
                                        stream.data(), y.data(), &mean, &rstd},
                1, n);
    const std::vector<float> row(x.begin(), x.end());
    const float expected = sum_in_lanes(row) / static_cast<float>(n);
    std::vector<float> squares;
    for (const float v : row) squares.push_back((v - expected) * (v - expected));
    EXPECT_EQ(mean, expected);
    EXPECT_EQ(rstd, 1.0f / std::sqrt(sum_in_lanes(squares) / static_cast<float>(n) + 1e-5f));
    float in_order = 0;
    for (const float v : squares) in_order += v;
    shows_the_order = shows_the_order || in_order != sum_in_lanes(squares);
  }
  EXPECT_TRUE(shows_the_order);
}

TEST(LayerNorm, WithoutABranchWorksInPlaceOnTheStreamAndCopiesItElsewhere) {
  constexpr uint32_t n = 64;
  auto x = noise<float>(1, n);
  const auto before = x;
  const std::vector<float> gain(n, 1), bias(n, 0);
  std::vector<float> y(n), copy(n);
  float mean, rstd;
  for (float* stream : {x.data(), copy.data()}) {
    norm<true>(LayerNormForward<float>{x.data(), nullptr, gain.data(), bias.data(), 1e-5f, stream,
                                       y.data(), &mean, &rstd},
               1, n);
    EXPECT_EQ(x, before);
    EXPECT_NEAR(Warp{}.sum(n, [&](uint32_t i) { return y[i]; }), 0, 1e-4);
  }
  EXPECT_EQ(copy, before);
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
  std::vector<TypeParam> copy(kRows * n), y(kRows * n), dx(kRows * n), wide(kRows * n);
  norm<false>(LayerNormForward<TypeParam>{stream.data(), nullptr, gain.data(), bias.data(), 1e-5f,
                                          copy.data(), y.data(), mean.data(), rstd.data()},
              kRows, n);
  LayerNormBackward<TypeParam> op{dy.data(),   d_stream.data(), stream.data(), gain.data(),
                                  mean.data(), rstd.data(),     dx.data()};
  const std::vector<float> partials = norm_backward<false>(op, kRows, n);
  EXPECT_EQ(partials, walk<false>(NormColumns<TypeParam>{op}, kRows, n));
  op.dx = wide.data();
  std::vector<double> d_gain(n), d_bias(n);
  for (uint32_t row = 0; row < kRows; ++row) {
    layer_norm_backward_wide_row(Warp{}, op, row, n);
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
      for (const auto& result : {dx, wide})
        EXPECT_NEAR(to_float(result[row * n + i]), expected, tolerance<TypeParam>(expected) + 4e-6);
    }
  }
  const auto chunks = column_chunks(kRows);
  ASSERT_EQ(chunks, 3u);
  for (uint32_t i = 0; i < n; ++i) {
    EXPECT_NEAR(sum_of_chunks(partials.data(), chunks, n, i), d_gain[i], 2e-4);
    EXPECT_NEAR(sum_of_chunks(partials.data() + chunks * n, chunks, n, i), d_bias[i], 2e-4);
  }
}

TYPED_TEST(Layers, SumColumnsOverManyChunks) {
  constexpr uint32_t kRows = 40 * kColumnChunk + 3;  // more chunks than lanes of chunks
  constexpr uint32_t n = 19;
  const auto x = noise<TypeParam>(1, kRows * n);
  const std::vector<float> partials = walk<false>(PlainColumns<TypeParam>{x.data()}, kRows, n);
  for (uint32_t i = 0; i < n; ++i) {
    double expected = 0;
    for (uint32_t row = 0; row < kRows; ++row) expected += to_float(x[row * n + i]);
    EXPECT_NEAR(sum_of_chunks(partials.data(), column_chunks(kRows), n, i), expected, 1e-3);
  }
}

double exact_gelu(double z) {
  return 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
}

double exact_slope(double z) {
  return (exact_gelu(z + 1e-5) - exact_gelu(z - 1e-5)) / 2e-5;
}

TYPED_TEST(Layers, GiveGeluOfXAndBiasAndTheirGradients) {
  constexpr uint32_t kRows = kColumnChunk + 5;
  constexpr uint32_t n = 45;
  const auto x = noise<TypeParam>(1, kRows * n);
  const auto bias = noise<float>(2, n);
  const auto dy = noise<TypeParam>(3, kRows * n);
  std::vector<TypeParam> y(kRows * n), dx = dy;  // in place
  walk<false>(GeluColumns<TypeParam>{{x.data(), bias.data(), y.data()}}, kRows, n);
  const std::vector<float> partials = walk<false>(
      GeluBackwardColumns<TypeParam>{{dx.data(), x.data(), bias.data(), dx.data()}}, kRows, n);
  for (uint32_t i = 0; i < n; ++i) {
    double d_bias = 0;
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint32_t at = row * n + i;
      const double z = static_cast<double>(to_float(x[at])) + static_cast<double>(bias[i]);
      EXPECT_NEAR(to_float(y[at]), exact_gelu(z), tolerance<TypeParam>(exact_gelu(z)));
      const double expected = to_float(dy[at]) * exact_slope(z);
      EXPECT_NEAR(to_float(dx[at]), expected, tolerance<TypeParam>(expected) + 4e-6);
      d_bias += to_float(dx[at]);
    }
    EXPECT_NEAR(sum_of_chunks(partials.data(), column_chunks(kRows), n, i), d_bias, 1e-4);
  }
}

TEST(Gelu, IsTheTanhApproximationAndItsSlope) {
  for (double z = -12; z <= 12; z += 0.037) {
    const auto at = static_cast<float>(z);
    EXPECT_NEAR(gelu<float>(at), exact_gelu(z), 1e-6 * (1 + std::abs(z))) << z;
    EXPECT_NEAR(gelu_derivative<float>(at), exact_slope(z), 2e-6) << z;
  }
}

TEST(Gelu, OfLargeValuesIsZeroOrTheValueAndOfNoNumberNoNumber) {
  for (const float z : {20.0f, 1e4f, 1e18f}) {
    EXPECT_EQ(gelu<float>(z), z);
    EXPECT_EQ(gelu<float>(-z), 0.0f);
    EXPECT_EQ(gelu_derivative<float>(z), 1.0f);
    EXPECT_EQ(gelu_derivative<float>(-z), 0.0f);
  }
  EXPECT_TRUE(std::isnan(gelu<float>(NAN)));
  EXPECT_TRUE(std::isnan(gelu_derivative<float>(NAN)));
}

// Copies the values to one element past a multiple of 16 bytes.
template <typename T>
std::vector<T> shifted(const std::vector<T>& values) {
  std::vector<T> moved(1);
  moved.insert(moved.end(), values.begin(), values.end());
  return moved;
}

template <typename T>
bool have_same_bits(const std::vector<T>& a, const std::vector<T>& moved) {
  return moved.size() == a.size() + 1 &&
         std::memcmp(a.data(), moved.data() + 1, a.size() * sizeof(T)) == 0;
}

TYPED_TEST(Layers, GiveTheSameBitsByWideLoadsAndByElements) {
  using T = TypeParam;
  constexpr uint32_t kRows = kColumnChunk + 9;
  constexpr uint32_t n = 328;  // lanes hold one or two groups
  const auto x = noise<T>(1, kRows * n, 1), branch = noise<T>(2, kRows * n);
  const auto gain = noise<float>(3, n), bias = noise<float>(4, n);
  const auto x2 = shifted(x), branch2 = shifted(branch);
  const auto gain2 = shifted(gain), bias2 = shifted(bias);
  std::vector<T> stream(kRows * n), y(kRows * n);
  auto stream2 = shifted(stream), y2 = shifted(y);
  std::vector<float> mean(kRows), rstd(kRows), mean2(kRows), rstd2(kRows);
  ASSERT_TRUE(
      are_rows_aligned<T>(n, x.data(), branch.data(), gain.data(), stream.data(), y.data()));
  ASSERT_FALSE(are_rows_aligned<T>(n, x.data(), gain2.data() + 1));
  ASSERT_FALSE(are_rows_aligned<T>(n + 1, x.data()));
  norm<true>(LayerNormForward<T>{x.data(), branch.data(), gain.data(), bias.data(), 1e-5f,
                                 stream.data(), y.data(), mean.data(), rstd.data()},
             kRows, n);
  norm<false>(
      LayerNormForward<T>{x2.data() + 1, branch2.data() + 1, gain2.data() + 1, bias2.data() + 1,
                          1e-5f, stream2.data() + 1, y2.data() + 1, mean2.data(), rstd2.data()},
      kRows, n);
  EXPECT_TRUE(have_same_bits(stream, stream2));
  EXPECT_TRUE(have_same_bits(y, y2));
  EXPECT_EQ(mean, mean2);
  EXPECT_EQ(rstd, rstd2);

  std::vector<T> dx(kRows * n);
  auto dx2 = shifted(dx);
  const LayerNormBackward<T> back{x.data(),    branch.data(), stream.data(), gain.data(),
                                  mean.data(), rstd.data(),   dx.data()};
  const LayerNormBackward<T> back2{x2.data() + 1,    branch2.data() + 1, stream2.data() + 1,
                                   gain2.data() + 1, mean2.data(),       rstd2.data(),
                                   dx2.data() + 1};
  const std::vector<float> sums = norm_backward<true>(back, kRows, n);
  EXPECT_EQ(sums, norm_backward<false>(back2, kRows, n));
  EXPECT_EQ(sums, walk<true>(NormColumns<T>{back}, kRows, n));
  EXPECT_TRUE(have_same_bits(dx, dx2));

  walk<true>(GeluColumns<T>{{x.data(), bias.data(), y.data()}}, kRows, n);
  walk<false>(GeluColumns<T>{{x2.data() + 1, bias2.data() + 1, y2.data() + 1}}, kRows, n);
  EXPECT_TRUE(have_same_bits(y, y2));
  EXPECT_EQ(walk<true>(GeluBackwardColumns<T>{{branch.data(), x.data(), bias.data(), dx.data()}},
                       kRows, n),
            walk<false>(GeluBackwardColumns<T>{{branch2.data() + 1, x2.data() + 1, bias2.data() + 1,
                                                dx2.data() + 1}},
                        kRows, n));
  EXPECT_TRUE(have_same_bits(dx, dx2));
}

}  // namespace
}  // namespace lockstep::cuda
