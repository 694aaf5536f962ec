#include "data/formats/tokens/best_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "comm/base/prng.h"
#include "data/base/room_set.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

using Lengths = std::vector<uint32_t>;

// Returns what is left in each pack, as they are begun, by looking at every pack for every piece.
Lengths naive_best_fit(Lengths lengths, uint32_t room) {
  std::stable_sort(lengths.begin(), lengths.end(), std::greater<>());
  Lengths left;
  for (const uint32_t length : lengths) {
    auto best = left.end();
    for (auto it = left.begin(); it != left.end(); ++it)
      if (*it >= length && (best == left.end() || *it < *best)) best = it;
    if (best == left.end())
      left.push_back(room - length);
    else
      *best -= length;
  }
  return left;
}

// The fewest packs that these need, by trying everything.
uint64_t fewest(const Lengths& lengths, size_t at, Lengths& left, uint32_t room, uint64_t best) {
  if (left.size() >= best) return best;
  if (at == lengths.size()) return left.size();
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] < lengths[at]) continue;
    left[i] -= lengths[at];
    best = fewest(lengths, at + 1, left, room, best);
    left[i] += lengths[at];
  }
  left.push_back(room - lengths[at]);
  best = fewest(lengths, at + 1, left, room, best);
  left.pop_back();
  return best;
}

// Checks that the packs hold every piece once, rising. Returns what is left in each pack.
Lengths checked(const Packs& packs, const Lengths& lengths, uint32_t room) {
  std::vector<int> seen(lengths.size());
  Lengths left;
  for (uint64_t i = 0; i < packs.size(); ++i) {
    uint64_t filled = 0;
    for (const uint32_t piece : packs.of(i)) {
      ++seen[piece];
      filled += lengths[piece];
    }
    EXPECT_GT(filled, 0U);
    EXPECT_LE(filled, room);
    EXPECT_TRUE(std::is_sorted(packs.of(i).begin(), packs.of(i).end()));
    left.push_back(static_cast<uint32_t>(room - filled));
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<long>(lengths.size()));
  return left;
}

Lengths some_lengths(uint64_t seed, size_t count, uint32_t room) {
  Prng prng(seed);
  Lengths lengths(count);
  // Some of them short, as of texts.
  for (uint32_t& length : lengths)
    length = 1 + static_cast<uint32_t>(prng.below(prng.below(3) == 0 ? room : room / 4 + 1) % room);
  return lengths;
}

TEST(BestFit, FillsSmallPacksWithoutAGap) {
  const Packs packs = best_fit(Lengths{3, 7, 5, 2, 8, 5}, 10);
  ASSERT_EQ(packs.size(), 3U);
  EXPECT_THAT(packs.of(0), ElementsAre(3, 4));  // 2 + 8
  EXPECT_THAT(packs.of(1), ElementsAre(0, 1));  // 3 + 7
  EXPECT_THAT(packs.of(2), ElementsAre(2, 5));
}

TEST(BestFit, TakesThePackWithTheLeastRoomAndOfThoseTheFirst) {
  const Packs packs = best_fit(Lengths{6, 7, 7, 3, 3, 4}, 10);
  ASSERT_EQ(packs.size(), 3U);
  EXPECT_THAT(packs.of(0), ElementsAre(1, 3));
  EXPECT_THAT(packs.of(1), ElementsAre(2, 4));
  EXPECT_THAT(packs.of(2), ElementsAre(0, 5));
}

TEST(BestFit, NothingAndWhatFillsAPackAlone) {
  EXPECT_EQ(best_fit({}, 10).size(), 0U);
  EXPECT_EQ(best_fit(Lengths{1, 1, 1}, 1).size(), 3U);
  EXPECT_EQ(best_fit(Lengths{1'048'576, 1, 1'048'575}, 1'048'576).size(), 2U);
}

// Both need as many packs and leave the same room in as many of them.
TEST(BestFit, LeavesWhatLookingAtEveryPackLeaves) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const uint32_t room = std::array{1U, 5U, 63U, 64U, 65U, 1024U, 4097U}[seed % 7];
    const Lengths lengths = some_lengths(seed, 20 * seed, room);
    Lengths left = checked(best_fit(lengths, room), lengths, room);
    Lengths naive = naive_best_fit(lengths, room);
    std::sort(left.begin(), left.end());
    std::sort(naive.begin(), naive.end());
    EXPECT_EQ(left, naive) << "seed " << seed;
  }
}

TEST(BestFit, NeedsAtMostElevenNinthsOfTheFewestPacks) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Lengths lengths = some_lengths(seed, 9, 12);
    Lengths left;
    const uint64_t least = fewest(lengths, 0, left, 12, lengths.size());
    EXPECT_LE(9 * best_fit(lengths, 12).size(), 11 * least + 6) << "seed " << seed;
  }
}

TEST(BestFit, ByLengthIsStable) {
  EXPECT_THAT(by_length(Lengths{3, 1, 2, 3, 1}, 4), ElementsAre(1, 4, 2, 0, 3));
}

TEST(RoomSet, FindsTheLeastFromANumberOn) {
  for (const uint64_t limit : {0UL, 1UL, 63UL, 64UL, 4095UL, 4096UL, 300'000UL}) {
    RoomSet set(limit);
    std::vector<bool> is_in(limit + 1);
    Prng prng(limit + 1);
    for (int i = 0; i < 400; ++i) {
      const uint64_t number = prng.below(limit + 1);
      is_in[number] = prng.below(3) > 0;
      is_in[number] ? set.insert(number) : set.erase(number);
      const uint64_t from = prng.below(limit + 1);
      const auto least = std::find(is_in.begin() + static_cast<long>(from), is_in.end(), true);
      const auto found = set.least_from(from);
      ASSERT_EQ(found.has_value(), least != is_in.end());
      if (found) {
        ASSERT_EQ(*found, static_cast<uint64_t>(least - is_in.begin()));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::data
