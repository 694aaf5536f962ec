// Heartbeats say how far a device has come, here in plain memory whose copies run as late as they
// may.
#include "worker/device/bucket_counter.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_module.h"
#include "worker/device/device_marks.h"

namespace lockstep {
namespace {

struct Counted {
  Counted() { EXPECT_TRUE(counter.reserve().is_ok()); }
  // The device does all that kGradients has so far.
  void run() {
    EXPECT_TRUE(module.mark(kGradientsReached, DeviceLane::kGradients).is_ok());
    EXPECT_TRUE(module.wait(kGradientsReached).is_ok());
  }
  testing::PlainModule module;
  BucketCounter counter{module};
};

TEST(BucketCounter, CountsWhatTheDeviceHasDoneAndNotWhatWasEnqueued) {
  Counted c;
  c.counter.begin_step();
  for (const uint32_t buckets : {1u, 2u, 3u}) EXPECT_TRUE(c.counter.count(buckets).is_ok());
  EXPECT_EQ(c.counter.finished(), 0u);
  c.run();
  EXPECT_EQ(c.counter.finished(), 3u);
  c.counter.set(9);
  EXPECT_EQ(c.counter.finished(), 9u);
  c.counter.begin_step();
  EXPECT_EQ(c.counter.finished(), 0u);
}

TEST(BucketCounter, ACopyOfAStepThatEndedEarlyDoesNotCountForTheNext) {
  Counted c;
  c.counter.begin_step();
  EXPECT_TRUE(c.counter.count(7).is_ok());
  c.counter.begin_step();
  c.run();
  EXPECT_EQ(c.counter.finished(), 0u);
}

// A heartbeat reads the words, also while a kernel never ends.
TEST(BucketCounter, HasItsWordsInTheHostsMemory) {
  const Counted c;
  EXPECT_EQ(c.module.allocated_bytes(), (BucketCounter::kMostBuckets + 2) * sizeof(uint32_t));
}

// Tests a heartbeat while the host has enqueued its whole step and the device, which is as late as
// it may be, has finished nothing: a kernel without end leaves a worker so.
TEST(BucketCounter, IsWhatAnEngineSaysOfConnectedDevices) {
  constexpr uint64_t kBucketBytes = 4096;
  const auto dataset = testing::make_patterns(80);
  testing::PlainModule modules[2];
  testing::LoopbackWorld world(testing::small_job("cnn"), *dataset, testing::even_runs(4, 2),
                               kBucketBytes, nullptr, {&modules[0], &modules[1]});
  world.connects_devices = true;
  Progress last[2];
  uint32_t calls[2] = {};
  world.on_enqueued = [&](uint32_t rank) {
    last[rank] = world.engine(rank).progress();
    ++calls[rank];
  };
  world.begin_generation(1);
  for (const auto& outcome : world.step_all())
    EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_GT(calls[rank], 1u);
    EXPECT_EQ(last[rank].enqueued, calls[rank]);
    EXPECT_EQ(last[rank].bucket, 0u) << "this is what the host has enqueued";
    const Progress now = world.engine(rank).progress();
    EXPECT_GT(now.bucket, calls[rank]) << "all sums are there";
    EXPECT_EQ(now.enqueued, now.bucket);
  }
}

TEST(BucketCounter, CountsNothingWithoutMemory) {
  testing::PlainModule module;
  BucketCounter counter(module);
  counter.begin_step();
  EXPECT_TRUE(counter.count(1).is_ok());
  EXPECT_EQ(counter.finished(), 0u);
}

}  // namespace
}  // namespace lockstep
