#include "data/loader/batch_ring.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "comm/base/limits.h"

namespace lockstep::data {
namespace {

constexpr BatchRing::Sizes kSizes{.samples = 4, .input_bytes = 100, .labels_bytes = 8};

std::unique_ptr<BatchRing> ring_of(uint32_t ahead) {
  return std::move(BatchRing::make(kSizes, ahead)).value();
}

// One of the maker's: all of its memory says which it is.
void make_one(BatchRing& ring, Step step) {
  BatchRing::Place* place = ring.wait_for_place();
  ASSERT_NE(place, nullptr);
  place->batch.step = step;
  std::memset(place->inputs, static_cast<int>(step), kSizes.samples * kSizes.input_bytes);
  std::memset(place->labels, static_cast<int>(step), kSizes.samples * kSizes.labels_bytes);
  ring.made();
}

void expect_whole(const BatchRing::Place& place, Step step) {
  EXPECT_EQ(place.batch.step, step);
  for (uint64_t i = 0; i < kSizes.samples * kSizes.input_bytes; ++i)
    ASSERT_EQ(place.inputs[i], static_cast<std::byte>(step));
  for (uint64_t i = 0; i < kSizes.samples * kSizes.labels_bytes; ++i)
    ASSERT_EQ(reinterpret_cast<const std::byte*>(place.labels)[i], static_cast<std::byte>(step));
}

TEST(BatchRing, GivesThemInOrderAndThenTheEnd) {
  const auto ring = ring_of(3);
  for (Step step = 0; step < 3; ++step) make_one(*ring, step);
  ring->end_with(Status::ok());
  EXPECT_EQ(ring->ready(), 3U);
  for (Step step = 0; step < 3; ++step) expect_whole(**ring->take(), step);
  for (int again = 0; again < 2; ++again) EXPECT_EQ(ring->take().value(), nullptr);
}

TEST(BatchRing, AFailureIsBehindWhatWasMade) {
  const auto ring = ring_of(3);
  make_one(*ring, 7);
  ASSERT_NE(ring->wait_for_place(), nullptr);  // in the making, and never made
  ring->end_with({Code::kBadData, "damaged"});
  expect_whole(**ring->take(), 7);
  for (int again = 0; again < 2; ++again) EXPECT_EQ(ring->take().status().code(), Code::kBadData);
}

TEST(BatchRing, WhatIsHeldStaysWhileTheRingIsFilledAgain) {
  const auto ring = ring_of(2);
  for (Step step = 0; step < 2; ++step) make_one(*ring, step);
  for (Step step = 0; step < 50; ++step) {
    const BatchRing::Place* held = *ring->take();
    if (ring->ready() <= 1) make_one(*ring, step + 2);
    expect_whole(*held, step);
  }
}

// One is held, one is in the making and others are ready while more memory comes.
TEST(BatchRing, GrowsAroundWhatIsInUse) {
  const auto ring = ring_of(2);
  for (Step step = 0; step < 2; ++step) make_one(*ring, step);
  const BatchRing::Place* held = *ring->take();
  BatchRing::Place* making = ring->wait_for_place();
  making->batch.step = 2;
  std::memset(making->inputs, 2, kSizes.samples * kSizes.input_bytes);
  ASSERT_TRUE(ring->set_ahead(9));
  EXPECT_EQ(ring->ahead(), 9U);
  expect_whole(*held, 0);
  EXPECT_EQ(ring->wait_for_place(), making);
  std::memset(making->labels, 2, kSizes.samples * kSizes.labels_bytes);
  ring->made();
  for (Step step = 3; step < 10; ++step) make_one(*ring, step);
  EXPECT_EQ(ring->ready(), 9U);
  expect_whole(*held, 0);
  std::set<const BatchRing::Place*> places{held};
  for (Step step = 1; step < 10; ++step) {
    const BatchRing::Place* place = *ring->take();
    expect_whole(*place, step);
    EXPECT_TRUE(places.insert(place).second);
  }
}

TEST(BatchRing, GoesLessFarAheadAndFartherAgain) {
  const auto ring = ring_of(4);
  ASSERT_TRUE(ring->set_ahead(8));
  for (Step step = 0; step < 8; ++step) make_one(*ring, step);
  ASSERT_TRUE(ring->set_ahead(4));
  for (Step step = 0; step < 6; ++step) expect_whole(**ring->take(), step);
  EXPECT_EQ(ring->ready(), 2U);
  for (Step step = 8; step < 10; ++step) make_one(*ring, step);
  ASSERT_TRUE(ring->set_ahead(8));
  for (Step step = 10; step < 14; ++step) make_one(*ring, step);
  for (Step step = 6; step < 14; ++step) expect_whole(**ring->take(), step);
}

TEST(BatchRing, WhatIsBeyondItsMemoryIsRefusedAndItGoesOn) {
  const BatchRing::Sizes large{.samples = 1, .input_bytes = 20 << 20, .labels_bytes = 8};
  const auto ring = std::move(BatchRing::make(large, 4)).value();
  EXPECT_TRUE(ring->set_ahead(8));
  EXPECT_FALSE(ring->set_ahead(16));  // 340 MiB
  EXPECT_EQ(ring->ahead(), 8U);
  // The limit does not hold for what the job asks for.
  const auto deep = std::move(BatchRing::make(large, 20)).value();
  EXPECT_TRUE(deep->set_ahead(20));
  EXPECT_FALSE(deep->set_ahead(21));
}

// One of two threads goes farther and less far ahead all the time.
TEST(BatchRing, NothingIsLostBetweenThreads) {
  constexpr Step kBatches = 5'000;
  const auto ring = ring_of(1);
  std::thread maker([&] {
    for (Step step = 0; step < kBatches; ++step) make_one(*ring, step);
    ring->end_with(Status::ok());
  });
  for (Step step = 0; step < kBatches; ++step) {
    expect_whole(**ring->take(), step);
    if (step % 7 != 0) continue;
    EXPECT_TRUE(ring->set_ahead(1 + static_cast<uint32_t>(step * 5 % 13)));
  }
  EXPECT_EQ(ring->take().value(), nullptr);
  maker.join();
}

TEST(BatchRing, StopWakesTheMaker) {
  const auto ring = ring_of(1);
  make_one(*ring, 0);
  std::thread maker([&] { EXPECT_EQ(ring->wait_for_place(), nullptr); });
  ring->stop();
  maker.join();
  EXPECT_EQ(ring->wait_for_place(), nullptr);
}

// Nothing is taken, so only that more may be ready can wake it.
TEST(BatchRing, MoreThatMayBeReadyWakesTheMaker) {
  const auto ring = ring_of(2);
  for (Step step = 0; step < 2; ++step) make_one(*ring, step);
  std::atomic<bool> begun{false};
  std::thread maker([&] {
    begun = true;
    make_one(*ring, 2);
  });
  while (!begun) sched_yield();
  for (int i = 0; i < 1'000; ++i) sched_yield();  // time in which it falls asleep
  ASSERT_TRUE(ring->set_ahead(4));
  maker.join();
  EXPECT_EQ(ring->ready(), 3U);
}

}  // namespace
}  // namespace lockstep::data
