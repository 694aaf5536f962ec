#include "data/io/byte_ring.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

namespace lockstep::data {
namespace {

// Compares the bytes themselves: no run overwrites another's.
RC_GTEST_PROP(ByteRing, RunsLieInOnePieceAndDoNotOverlap, ()) {
  const auto size = *rc::gen::inRange<uint64_t>(1, 4'000);
  auto ring = ByteRing::make(size);
  RC_ASSERT(ring.has_value());
  struct Run {
    uint64_t place, bytes;
    uint8_t mark;
  };
  std::deque<Run> runs;
  const auto check_and_free = [&] {
    const Run run = runs.front();
    runs.pop_front();
    const auto* bytes = ring->at(run.place);
    RC_ASSERT(std::all_of(bytes, bytes + run.bytes, [&](auto byte) { return byte == run.mark; }));
    ring->free_to(run.place, run.bytes);
  };
  for (uint8_t step = 0; step < 200; ++step) {
    const auto bytes = *rc::gen::inRange<uint64_t>(0, size + 1);
    auto place = ring->take(bytes);
    while (!place) {
      RC_ASSERT(!runs.empty());  // else there is room
      check_and_free();
      place = ring->take(bytes);
    }
    std::memset(ring->at(*place), step, bytes);
    runs.push_back({*place, bytes, step});
    RC_ASSERT(ring->used() <= ring->size());
  }
  while (!runs.empty()) check_and_free();
  RC_ASSERT(ring->used() == 0U);
}

TEST(ByteRing, GivesNoneForMoreThanItHolds) {
  auto ring = ByteRing::make(640);
  EXPECT_FALSE(ring->take(641).has_value());
  EXPECT_TRUE(ring->take(640).has_value());
  EXPECT_FALSE(ring->take(1).has_value());
}

}  // namespace
}  // namespace lockstep::data
