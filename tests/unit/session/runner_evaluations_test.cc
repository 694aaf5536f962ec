// Tests what a member knows of the run before its generation: the evaluations that its state has
// passed, as the start tells them, and what comes with a state from another member.
#include <gtest/gtest.h>

#include "tests/unit/session/runner_world.h"

namespace lockstep {
namespace {

using testing::RunnerWorld;

constexpr Step kEvaluated = 10;  // RunnerWorld

// The start tells this evaluation as the last one and the best one, without a checkpoint of it.
void tell_evaluation(wire::Start& start) {
  const EvalMark mark{.step = kEvaluated, .loss = 0, .correct = 0, .samples = 0};
  put_track({.best = mark, .last = mark, .since = 0, .kept = {}}, start.mutable_evals());
}

// Generation 1 of these two members, which both hold the state before the first evaluation at its
// end.
void close_before_evaluation(RunnerWorld& world, Step total) {
  for (const size_t i : {0, 1})
    world[i].engine.on_evaluate = [](Step) { return Status(Code::kAborted, "a peer is gone"); };
  world.start(1, world.fresh({0, 1}, total), {0, 1});
  for (const size_t i : {0, 1}) {
    world[i].port.wait_for("g1 suspect");
    EXPECT_EQ(world[i].close(1).applied, (ResumePoint{kEvaluated, Phase::kEval}));
    world[i].engine.on_evaluate = [](Step) { return Status::ok(); };
  }
}

// One that died has made it. It was the best, and the next one is no better: the run ends there.
TEST(RunnerEvaluations, AMemberCountsTheEvaluationThatAnotherOneMadeAtItsStep) {
  RunnerWorld world(2, 4, 0, 0, /*patience=*/1);
  close_before_evaluation(world, 100);
  wire::Start next = world.resume({0, 1}, 100, {kEvaluated, Phase::kTrain}, {0, 1});
  tell_evaluation(next);
  world.start(2, next, {0, 1});
  world.expect_undisturbed({0, 1}, "g2", 20);
  EXPECT_EQ(world[0].port.count("eval 10"), 0u);
}

// The writer died before its checkpoint of the best evaluation was in the journal.
TEST(RunnerEvaluations, TheBestEvaluationIsKeptAgainWhereTheStartKnowsOfNoCheckpoint) {
  RunnerWorld world(3, 4, 0, 0, 0, "loss");
  world[0].engine.on_step = [](Step step) {
    return step == kEvaluated ? Status(Code::kInternal, "dies") : Status::ok();
  };
  world.start(1, world.fresh({0, 1, 2}, 24), {0, 1, 2});
  for (const size_t i : {1, 2}) {
    world[i].port.wait_for("g1 suspect");
    EXPECT_EQ(world[i].close(1).applied, (ResumePoint{kEvaluated, Phase::kTrain}));
  }
  wire::Start next = world.resume({1, 2}, 24, {kEvaluated, Phase::kTrain}, {1, 2});
  tell_evaluation(next);
  world.start(2, next, {1, 2});
  world.expect_undisturbed({1, 2}, "g2", 24);
  EXPECT_EQ(world[1].port.count("g2 checkpoint 10"), 1u);
  EXPECT_EQ(world[1].port.count("g2 checkpoint"), 2u) << "and the last one";
}

TEST(RunnerEvaluations, TheEngineIsToldTheLastEvaluationOfItsState) {
  RunnerWorld world(2);
  close_before_evaluation(world, 15);
  EXPECT_EQ(world[0].engine.evaluated().step, 0u);
  wire::Start next = world.resume({0, 1}, 15, {kEvaluated, Phase::kTrain}, {0, 1});
  tell_evaluation(next);
  world.start(2, next, {0, 1});
  world.expect_undisturbed({0, 1}, "g2", 15);
  for (const size_t i : {0, 1}) EXPECT_EQ(world[i].engine.evaluated().step, kEvaluated);
}

// Member 1 joins after step `at` of generation `old`, in which member 0 is alone, and is the writer
// of the next one.
void join_as_writer(RunnerWorld& world, Generation old, Step at, Step total) {
  const wire::Start next = world.plan({1, 0}, total, {0});
  world[0].engine.on_step = [&world, old, at, next](Step step) {
    if (step == at) world.tell_plan(old + 1, next, 0);
    return Status::ok();
  };
  world.tell_plan(old + 1, next, 1);
}

TEST(RunnerEvaluations, AStateComesWithTheLastEvaluationAndTheProofOfItsSteps) {
  RunnerWorld world(2);
  join_as_writer(world, 1, 12, 19);
  world.start(1, world.fresh({0}, 19), {0});
  world.expect_undisturbed({0, 1}, "g2", 19);
  EXPECT_EQ(world[1].engine.evaluated().step, kEvaluated);
  const StepProof proof = world.manifest(19, 2, 1).proof;
  ASSERT_TRUE(proof.is_known());
  EXPECT_EQ(proof.steps(), 19u);
}

TEST(RunnerEvaluations, AStateComesWithTheCheckpointThatItsRunBeganWith) {
  RunnerWorld world(2);
  world.start(1, world.fresh({0}, 5), {0});
  world[0].port.wait_for("g1 leave FINISHED 5");
  (void)world[0].close(1);
  wire::Start loads = world.make_start({0}, 19);
  const CheckpointName name{5, 1, world[0].id};
  *loads.mutable_resume() = to_wire(ResumePoint{5, Phase::kTrain});
  loads.mutable_source()->set_checkpoint_path(world.path_of(name));
  join_as_writer(world, 2, 7, 19);
  world.start(2, loads, {0});
  world.expect_undisturbed({0, 1}, "g3", 19);
  EXPECT_EQ(world.manifest(19, 3, 1).lineage.resumed_from, checkpoint_name(name));
}

// An install that fails leaves parts of two states, which no generation may take for one.
TEST(RunnerEvaluations, WhileAStateIsInstalledTheMemberSaysThatItHoldsNone) {
  RunnerWorld world(2);
  std::vector<bool> held;
  world[0].engine.on_install = [&] {
    held.push_back(world[0].gate.standing().applied.has_value());
  };
  world.start_with_one_ahead(24, 5, 6);
  world.expect_undisturbed({0, 1}, "g2", 24);
  EXPECT_EQ(held, std::vector<bool>{false});
}

}  // namespace
}  // namespace lockstep
