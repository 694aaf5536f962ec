// The side that sums decides how large buckets are, where the job does not.
#include <gtest/gtest.h>

#include "tests/unit/session/runner_world.h"

namespace lockstep {
namespace {

using testing::RunnerWorld;
using Bounds = std::vector<uint64_t>;

constexpr Step kFewSteps = 3;
const Bounds kPlanned = {0, 16, 32, 80};  // by the coordinator, for the host

// The buckets of both members, which are the same.
Bounds buckets_of(RunnerWorld& world) {
  wire::Start start = world.fresh({0, 1}, kFewSteps);
  for (const uint64_t bound : kPlanned) start.mutable_buckets()->add_bounds(bound);
  world.start(1, start, {0, 1});
  for (const size_t i : {0, 1}) {
    world[i].port.wait_for("g1 leave FINISHED");
    world[i].end();
  }
  EXPECT_EQ(world[0].engine.bucket_bounds(), world[1].engine.bucket_bounds());
  return world[0].engine.bucket_bounds();
}

TEST(RunnerBuckets, AreThoseOfNcclWhereDevicesSumAndTheJobDoesNotSay) {
  RunnerWorld world(2);
  EXPECT_EQ(buckets_of(world), (Bounds{0, 80}));
}

TEST(RunnerBuckets, AreThoseOfTheCoordinatorWhereTheHostSums) {
  RunnerWorld world(2);
  for (const size_t i : {0, 1}) world[i].devices.sum = false;
  EXPECT_EQ(buckets_of(world), kPlanned);
}

TEST(RunnerBuckets, AreThoseOfTheJobIfItSays) {
  RunnerWorld world(2, 4, /*bucket_mb=*/1);
  EXPECT_EQ(buckets_of(world), kPlanned);
}

}  // namespace
}  // namespace lockstep
