// Tests what runners do together when one of them dies or a change was planned. In every case the
// state at the end is the state of an undisturbed run.
#include <gtest/gtest.h>

#include "tests/unit/session/runner_world.h"

namespace lockstep {
namespace {

using testing::Event;
using testing::RunnerWorld;

constexpr Step kSteps = 24;

void dies_at_step(RunnerWorld& world, size_t member, Step when) {
  world[member].engine.on_step = [when](Step step) {
    return step == when ? Status(Code::kInternal, "dies") : Status::ok();
  };
}

TEST(RunnerRecovery, AfterADeathTheSurvivorsRedoTheStepToTheSameBits) {
  RunnerWorld world(3);
  dies_at_step(world, 2, 5);
  world.start(1, world.fresh({0, 1, 2}, kSteps), {0, 1, 2});
  for (const size_t i : {0, 1}) {
    world[i].port.wait_for("g1 suspect");
    const Standing standing = world[i].close(1);
    EXPECT_EQ(standing.lived, 1u);
    EXPECT_EQ(standing.applied, (ResumePoint{5, Phase::kTrain}));
  }
  world[2].port.wait_for("g1 leave FAILED 5");
  world.start(2, world.resume({0, 1}, kSteps, {5, Phase::kTrain}, {0, 1}), {0, 1});
  world.expect_undisturbed({0, 1}, "g2", kSteps);
  EXPECT_EQ(world[0].port.count("g2 step"), kSteps - 5);
  EXPECT_EQ(world[0].port.count("switched"), 0u);
}

TEST(RunnerRecovery, AllMembersSayWhatTheyHoldInTheFirstStepsAndAtTheEnd) {
  RunnerWorld world(2, 4, 0, /*check_every=*/1000);
  world.start(1, world.fresh({0, 1}, kSteps), {0, 1});
  for (const size_t i : {0, 1}) {
    world[i].port.wait_for("g1 leave FINISHED");
    for (const Step step : {1, 2, 4, 8, 16})
      EXPECT_GE(world[i].port.count("check after " + std::to_string(step)), 1u) << step;
    EXPECT_EQ(world[i].port.count("check after 24"), 1u);
    EXPECT_EQ(world[i].port.count("check after"), 6u);
  }
}

// By what they know of each generation, devices end the old one and begin the new one.
TEST(RunnerRecovery, AfterADeathTheSurvivorsConnectTheirDevicesAnew) {
  RunnerWorld world(3);
  dies_at_step(world, 2, 5);
  world.start(1, world.fresh({0, 1, 2}, kSteps), {0, 1, 2});
  for (const size_t i : {0, 1}) {
    world[i].port.wait_for("g1 suspect");
    world[i].close(1);
  }
  world.start(2, world.resume({0, 1}, kSteps, {5, Phase::kTrain}, {0, 1}), {0, 1});
  world[0].port.wait_for("g2 leave FINISHED");
  const auto connected = world[0].devices.connected();
  ASSERT_EQ(connected.size(), 2u);
  EXPECT_EQ(connected[0].generation, 1u);
  EXPECT_EQ(connected[0].members, (std::vector<MemberId>{10, 11, 12}));
  EXPECT_EQ(connected[0].node_of_rank, (std::vector<uint32_t>{0, 0, 0}));
  EXPECT_TRUE(connected[0].is_closed());
  EXPECT_EQ(connected[1].members, (std::vector<MemberId>{10, 11}));
  EXPECT_FALSE(connected[1].is_closed());
}

TEST(RunnerRecovery, TheLastSurvivorOwnsAllSlotsAndGoesOnToTheSameBits) {
  RunnerWorld world(2);
  dies_at_step(world, 0, 7);
  world.start(1, world.fresh({0, 1}, kSteps), {0, 1});
  world[1].port.wait_for("g1 suspect");
  EXPECT_EQ(world[1].close(1).applied, (ResumePoint{7, Phase::kTrain}));
  world.start(2, world.resume({1}, kSteps, {7, Phase::kTrain}, {1}), {1});
  world.expect_undisturbed({1}, "g2", kSteps);
}

// One has applied the step of which the other has the whole sum and no more.
TEST(RunnerRecovery, AMemberBehindGetsTheStateOfOneAhead) {
  RunnerWorld world(2);
  world.start_with_one_ahead(kSteps, 5, 6);
  world.expect_undisturbed({0, 1}, "g2", kSteps);
  EXPECT_EQ(world[0].port.count("g1 step 5"), 0u);
  EXPECT_EQ(world[0].port.count("g2 step 5"), 0u);
}

TEST(RunnerRecovery, AnEvaluationThatADeathInterruptedIsDoneAgainAndReportedByAll) {
  RunnerWorld world(3);
  world[0].engine.on_evaluate = [](Step) { return Status(Code::kInternal, "dies"); };
  world.start(1, world.fresh({0, 1, 2}, kSteps), {0, 1, 2});
  for (const size_t i : {1, 2}) {
    world[i].port.wait_for("g1 suspect");
    EXPECT_EQ(world[i].close(1).applied, (ResumePoint{10, Phase::kEval}));
  }
  world.start(2, world.resume({1, 2}, kSteps, {10, Phase::kEval}, {1, 2}), {1, 2});
  world.expect_undisturbed({1, 2}, "g2", kSteps);
  EXPECT_EQ(world[1].port.count("eval 10"), 1u);
  EXPECT_EQ(world[2].port.count("eval 10"), 1u);
}

TEST(RunnerRecovery, AMemberThatTrainedAndIsToldAFreshStartBeginsAnew) {
  RunnerWorld world(2);
  Event trained;
  world[0].engine.on_step = [&](Step step) {
    if (step == 3) trained.set();
    return step == 3 ? Status(Code::kAborted, "the peer is gone") : Status::ok();
  };
  world.start(1, world.fresh({0, 1}, kSteps), {0, 1});
  trained.wait();
  world[0].port.wait_for("g1 suspect");
  for (const size_t i : {0, 1}) (void)world[i].close(1);
  world[0].engine.on_step = [](Step) { return Status::ok(); };
  world.start(2, world.fresh({0, 1}, kSteps), {0, 1});
  world.expect_undisturbed({0, 1}, "g2", kSteps);
  EXPECT_EQ(world[1].port.count("g2 step"), kSteps);
}

// ---- planned changes

// Every listed member hears of the plan in this step, before its last bucket.
void tell_at_step(RunnerWorld& world, Step when, const wire::Start& next,
                  const std::vector<size_t>& to) {
  for (const size_t i : to) {
    world[i].engine.on_step = [&world, when, next, i](Step step) {
      if (step == when) world.tell_plan(2, next, i);
      return Status::ok();
    };
  }
}

TEST(RunnerRecovery, AWorkerJoinsBetweenTwoStepsWithTheStateOfTheOthers) {
  RunnerWorld world(3);
  const wire::Start next = world.plan({0, 2, 1}, kSteps, {0, 1});
  world.tell_plan(2, next, 0);
  world.tell_plan(2, next, 2);        // waits for the others from here on
  tell_at_step(world, 9, next, {1});  // an evaluation follows: it is the first of g2
  world.start(1, world.fresh({0, 1}, kSteps), {0, 1});
  world.expect_undisturbed({0, 1, 2}, "g2", kSteps);
  for (const size_t i : {0, 1, 2}) EXPECT_EQ(world[i].port.count("switched to g2 at 10"), 1u) << i;
  EXPECT_EQ(world[0].port.count("g1 step"), 10u);
  EXPECT_EQ(world[2].port.count("g2 step"), kSteps - 10);
  EXPECT_EQ(world[2].gate.standing().since, (ResumePoint{10, Phase::kEval}));
}

// Else it would train on alone: the evaluation after step 10 was the best, two worse ones end the
// run.
TEST(RunnerRecovery, AWorkerThatJoinsCountsTheEvaluationsThatTheStateHasPassed) {
  RunnerWorld world(3, 4, 0, 0, /*patience=*/2);
  const wire::Start next = world.plan({0, 2, 1}, 100, {0, 1});
  world.tell_plan(2, next, 0);
  world.tell_plan(2, next, 2);
  tell_at_step(world, 14, next, {1});
  world.start(1, world.fresh({0, 1}, 100), {0, 1});
  world.expect_undisturbed({0, 1, 2}, "g2", 30);
}

TEST(RunnerRecovery, WhoIsLeftOutLeavesAtTheBoundaryAndTheOthersGoOn) {
  RunnerWorld world(3);
  const wire::Start next = world.plan({1, 2}, kSteps, {1, 2});
  tell_at_step(world, 4, next, {0, 1, 2});
  world.start(1, world.fresh({0, 1, 2}, kSteps), {0, 1, 2});
  world[0].port.wait_for("g1 leave DRAINED 5");
  world.expect_undisturbed({1, 2}, "g2", kSteps);
  EXPECT_EQ(world[0].port.count("g1 step"), 5u);
  EXPECT_EQ(world[0].port.count("switched"), 0u);
  EXPECT_EQ(world[1].port.count("switched to g2 at 5"), 1u);
}

TEST(RunnerRecovery, OneLeavesAndAnotherJoinsInOneChange) {
  RunnerWorld world(3);
  const wire::Start next = world.plan({2, 1}, kSteps, {1});
  world.tell_plan(2, next, 2);
  tell_at_step(world, 11, next, {0, 1});
  world.start(1, world.fresh({0, 1}, kSteps), {0, 1});
  world[0].port.wait_for("g1 leave DRAINED 12");
  world.expect_undisturbed({1, 2}, "g2", kSteps);
}

TEST(RunnerRecovery, WhereAStopAndAChangeAreAgreedInTheSameStepTheStopWins) {
  RunnerWorld world(2);
  const wire::Start next = world.plan({0}, kSteps, {0});
  for (const size_t i : {0, 1}) {
    world[i].engine.on_step = [&world, next, i](Step step) {
      if (step != 6) return Status::ok();
      world.tell_plan(2, next, i);
      world[i].engine.request_stop();
      return Status::ok();
    };
  }
  world.start(1, world.fresh({0, 1}, kSteps), {0, 1});
  for (const size_t i : {0, 1}) {
    world[i].port.wait_for("g1 leave STOPPED 7");
    EXPECT_EQ(world[i].port.count("switched"), 0u);
  }
}

TEST(RunnerRecovery, AWorkerThatWaitsToJoinIsFreedByAPrepareAndJoinsTheNextGeneration) {
  RunnerWorld world(2);
  Event goes;
  world[0].engine.on_step = [&](Step step) {
    if (step == 3) goes.wait();
    return Status::ok();
  };
  world.tell_plan(2, world.plan({0, 1}, kSteps, {0}), 1);
  world.start(1, world.fresh({0}, kSteps), {0});
  world[0].port.wait_for("g1 step 2");
  EXPECT_EQ(world[1].close(2), Standing{});
  EXPECT_EQ(world[0].close(2).applied, (ResumePoint{3, Phase::kTrain}));
  world.start(3, world.resume({0, 1}, kSteps, {3, Phase::kTrain}, {0}), {0, 1});
  goes.set();
  world.expect_undisturbed({0, 1}, "g3", kSteps);
  EXPECT_EQ(world[1].port.count("switched"), 0u);
}

// It agreed like all others, but is gone before it has come to the barrier.
TEST(RunnerRecovery, ADeathBeforeTheBarrierLeavesEveryoneInTheOldGeneration) {
  RunnerWorld world(3);
  const wire::Start next = world.plan({0, 1}, kSteps, {0, 1});
  world[2].port.fail_record_of = 8;
  tell_at_step(world, 8, next, {0, 1, 2});
  world.start(1, world.fresh({0, 1, 2}, kSteps), {0, 1, 2});
  for (const size_t i : {0, 1}) {
    world[i].port.wait_for("g1 suspect");
    const Standing standing = world[i].close(2);
    EXPECT_EQ(standing.lived, 1u);
    EXPECT_EQ(standing.applied, (ResumePoint{9, Phase::kTrain}));
    EXPECT_EQ(world[i].port.count("switched"), 0u);
  }
  world.start(3, world.resume({0, 1}, kSteps, {9, Phase::kTrain}, {0, 1}), {0, 1});
  world.expect_undisturbed({0, 1}, "g3", kSteps);
}

// More ranks than slots: the last one owns none, cannot vote, and hears of the change last.
TEST(RunnerRecovery, ARankWithoutAVoteWaitsForTheChangeThatTheOthersAgreedOn) {
  RunnerWorld world(3, /*slots=*/2);
  wire::Start first = world.fresh({0, 1, 2}, kSteps);
  for (int r = 0; r < 3; ++r) {
    first.mutable_members(r)->mutable_slots()->set_begin(std::min(r, 2));
    first.mutable_members(r)->mutable_slots()->set_end(std::min(r + 1, 2));
  }
  const wire::Start next = world.plan({0, 1}, kSteps, {0, 1});
  tell_at_step(world, 4, next, {0, 1});
  world.start(1, first, {0, 1, 2});
  world[2].port.wait_for("g1 step 4");
  EXPECT_EQ(world[0].port.count("switched"), 0u);  // the barrier waits for it
  world.tell_plan(2, next, 2);
  world[2].port.wait_for("g1 leave DRAINED 5");
  world.expect_undisturbed({0, 1}, "g2", kSteps);
}

}  // namespace
}  // namespace lockstep
