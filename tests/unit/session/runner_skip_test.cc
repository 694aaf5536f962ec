// Runners whose starts leave slots out, over the real data plane.
#include <gtest/gtest.h>

#include "tests/unit/session/runner_world.h"

namespace lockstep {
namespace {

using testing::Event;
using testing::RunnerWorld;

constexpr Step kSteps = 24;

void skip_some(RunnerWorld& world) {
  world.skip(3, 1, 3);  // all of one member, nothing of the others
  world.skip(6, 0, 4);  // whole steps, two of them one after the other
  world.skip(14, 0, 4);
  world.skip(15, 0, 4);
}

void expect_undisturbed(RunnerWorld& world, const std::vector<size_t>& who,
                        const std::string& last) {
  for (const size_t i : who) {
    world[i].port.wait_for(last + " leave FINISHED " + std::to_string(kSteps));
    world[i].end();
  }
  const std::vector<float> expected = world.undisturbed(kSteps);
  for (const size_t i : who) EXPECT_TRUE(world[i].engine.values() == expected) << "member " << i;
}

TEST(RunnerSkip, SlotsAndWholeStepsLeftOutGiveTheSameBitsForAnyWorld) {
  RunnerWorld world(3);
  skip_some(world);
  world.start(1, world.fresh({0, 1, 2}, kSteps), {0, 1, 2});
  expect_undisturbed(world, {0, 1, 2}, "g1");
  EXPECT_EQ(world[0].port.count("g1 step"), kSteps);
  RunnerWorld whole(1);
  EXPECT_FALSE(world[0].engine.values() == whole.undisturbed(kSteps));
}

// Nobody waits for anybody in a step that is left out, so that members may be more than one step
// apart.
TEST(RunnerSkip, AMemberTwoStepsBehindGetsTheStateOfOneAhead) {
  RunnerWorld world(2);
  skip_some(world);
  Event ahead;
  Event release;
  world[0].engine.before_apply = [&](Step step) {
    if (step == 5) release.wait();
  };
  world[1].engine.on_step = [&](Step step) {
    if (step == 7) ahead.set();
    return Status::ok();
  };
  world.start(1, world.fresh({0, 1}, kSteps), {0, 1});
  ahead.wait();
  EXPECT_EQ(world[0].close(1).applied, (ResumePoint{5, Phase::kTrain}));
  EXPECT_EQ(world[1].close(1).applied, (ResumePoint{7, Phase::kTrain}));
  release.set();
  world.start(2, world.resume({0, 1}, kSteps, {7, Phase::kTrain}, {1}), {0, 1});
  expect_undisturbed(world, {0, 1}, "g2");
}

}  // namespace
}  // namespace lockstep
