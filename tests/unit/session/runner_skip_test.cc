// Runners whose starts leave slots out, over the real data plane.
#include <gtest/gtest.h>

#include "tests/unit/session/runner_world.h"

namespace lockstep {
namespace {

using testing::RunnerWorld;

constexpr Step kRunSteps = 24;

void skip_some(RunnerWorld& world) {
  world.skip(3, 1, 3);  // all of one member, nothing of the others
  world.skip(6, 0, 4);  // whole steps, two of them one after the other
  world.skip(14, 0, 4);
  world.skip(15, 0, 4);
}

TEST(RunnerSkip, SlotsAndWholeStepsLeftOutGiveTheSameBitsForAnyWorld) {
  RunnerWorld world(3);
  skip_some(world);
  world.start(1, world.fresh({0, 1, 2}, kRunSteps), {0, 1, 2});
  world.expect_undisturbed({0, 1, 2}, "g1", kRunSteps);
  EXPECT_EQ(world[0].port.count("g1 step"), kRunSteps);
  RunnerWorld whole(1);
  EXPECT_FALSE(world[0].engine.values() == whole.undisturbed(kRunSteps));
}

// Members do not wait for each other in a step that is left out, so they may be more than one step
// apart.
TEST(RunnerSkip, AMemberTwoStepsBehindGetsTheStateOfOneAhead) {
  RunnerWorld world(2);
  skip_some(world);
  world.start_with_one_ahead(kRunSteps, 5, 7);
  world.expect_undisturbed({0, 1}, "g2", kRunSteps);
}

}  // namespace
}  // namespace lockstep
