// Groups of 16 bytes, and the shapes of launches.
#include "worker/cuda/kernels/groups.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <utility>

#include "tests/unit/cuda/layer_values.h"
#include "worker/cuda/kernels/column_sums.h"
#include "worker/cuda/kernels/launch_shape.h"

namespace lockstep::cuda {
namespace {

template <typename T>
class Groups : public ::testing::Test {};
using Types = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(Groups, Types);

TYPED_TEST(Groups, HoldTheElementsOfARowAndZerosBehindIt) {
  using T = TypeParam;
  constexpr uint32_t n = 3 * kGroup<T> - 1;
  const auto row = noise<T>(1, 3 * kGroup<T>);
  std::vector<T> copy(n), whole(3 * kGroup<T>);
  ASSERT_EQ(group_count<T>(n), 3u);
  for (uint32_t g = 0; g < 3; ++g) {
    const Group<T> aligned = load_group<true>(row.data(), g, n);
    const Group<T> group = load_group<false>(row.data(), g, n);
    for (uint32_t j = 0; j < kGroup<T>; ++j) {
      const uint32_t i = g * kGroup<T> + j;
      EXPECT_EQ(element(aligned, j), to_float(row[i]));
      EXPECT_EQ(element(group, j), i < n ? to_float(row[i]) : 0.0f);
    }
    store_group<false>(copy.data(), g, n, group);
    store_group<true>(whole.data(), g, n, aligned);
  }
  for (uint32_t i = 0; i < n; ++i) EXPECT_EQ(to_float(copy[i]), to_float(row[i]));
  for (uint32_t i = 0; i < 3 * kGroup<T>; ++i) EXPECT_EQ(to_float(whole[i]), to_float(row[i]));
}

TYPED_TEST(Groups, RoundAsElementsDo) {
  float values[kGroup<TypeParam>];
  for (uint32_t j = 0; j < kGroup<TypeParam>; ++j) values[j] = 1 + static_cast<float>(j) * 0x1p-9f;
  const Group<TypeParam> group = group_of<TypeParam>(values);
  for (uint32_t j = 0; j < kGroup<TypeParam>; ++j)
    EXPECT_EQ(element(group, j), to_float(from_float<TypeParam>(values[j])));
}

TYPED_TEST(Groups, FloatsBesideThemLieInTheirPlaces) {
  using T = TypeParam;
  constexpr uint32_t n = 2 * kGroup<T>;
  const auto row = noise<float>(1, n);
  std::vector<float> a(n), b(n);
  for (uint32_t g = 0; g < 2; ++g) {
    const GroupFloats<T> aligned = load_floats<T, true>(row.data(), g, n);
    store_floats<T, true>(a.data(), g, n, aligned);
    store_floats<T, false>(b.data(), g, n, load_floats<T, false>(row.data(), g, n));
  }
  EXPECT_EQ(a, row);
  EXPECT_EQ(b, row);
}

TEST(LaunchShape, CoversTheWorkUpToTheLimitOfX) {
  EXPECT_EQ(blocks_for(0, 4), 0u);
  EXPECT_EQ(blocks_for(1, 4), 1u);
  EXPECT_EQ(blocks_for(8, 4), 2u);
  EXPECT_EQ(blocks_for(9, 4), 3u);
  EXPECT_EQ(blocks_for(1'000'000, 1, 8192), 8192u);
  EXPECT_EQ(blocks_for(std::numeric_limits<uint64_t>::max(), 1), 0x7fffffffu);
}

// More rows than a grid could have in y: chunks are not a dimension of their own.
TEST(LaunchShape, OfManyRowsHasABlockForEveryTile) {
  for (const uint64_t rows : {uint64_t{8'390'000}, uint64_t{100'000'000}}) {
    const uint64_t tiles = column_tiles<Bf16>(rows, 768);
    EXPECT_GT(column_chunks(rows), 65'535u);
    EXPECT_EQ(tiles, column_chunks(rows) * 3);
    EXPECT_EQ(blocks_for(tiles, 1), tiles);
    const ColumnTile last = tile_at<Bf16>(tiles - 1, 768);
    EXPECT_EQ(last.chunk, column_chunks(rows) - 1);
    EXPECT_EQ(last.first_group, 64u);
  }
}

TEST(LaunchShape, TilesMeetEveryGroupOfEveryChunkOnce) {
  constexpr uint32_t kColumns = 1000;  // 250 groups of floats
  constexpr uint64_t kRows = 5 * kColumnChunk + 1;
  std::set<std::pair<uint64_t, uint32_t>> met;
  for (uint64_t tile = 0; tile < column_tiles<float>(kRows, kColumns); ++tile) {
    const auto [chunk, first] = tile_at<float>(tile, kColumns);
    for (uint32_t g = first; g < first + kWarp && g < 250; ++g)
      EXPECT_TRUE(met.emplace(chunk, g).second);
  }
  EXPECT_EQ(met.size(), 6u * 250u);
}

}  // namespace
}  // namespace lockstep::cuda
