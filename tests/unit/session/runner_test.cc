// The training thread with an engine that only counts: steps, evaluations, checkpoints, resumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/state_of.h"
#include "tests/unit/session/counting_runner.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::RunnerTest;

TEST_F(RunnerTest, ARunStepsEvaluatesEveryEpochWritesItsLastCheckpointAndLeaves) {
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "step 1", "step 2", "eval 3", "step 3", "step 4",
                                        "eval 5", "leave FINISHED 5"));
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000005-g1-m4"));
  ASSERT_EQ(port_.checkpoints.size(), 1u);
  EXPECT_TRUE(port_.checkpoints[0].final());
  EXPECT_EQ(port_.checkpoints[0].weights_sha256().size(), 64u);
}

// The report of a hang needs them: also what is no sum, such as connecting.
TEST_F(RunnerTest, ItsConnectionsAndSmallOperationsAreInTheFlightRecord) {
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_EQ(flight_.world().generation, 1u);
  EXPECT_EQ(flight_.world().rank, 0u);
  EXPECT_EQ(flight_.world().world, 1u);
  const auto lines = flight_.newest(limits::kFlightLines);
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines.front().operation, FlightOperation::kConnect);
  EXPECT_EQ(lines.front().state, FlightState::kDone);
  EXPECT_EQ(lines.back().operation, FlightOperation::kBarrier);  // the engine's last one
  EXPECT_NE(lines.back().state, FlightState::kRunning);
}

TEST_F(RunnerTest, CheckpointsOnTheWayAreAllThereAndHoldTheirOwnStep) {
  job_.mutable_checkpoint()->set_every_steps(2);
  run(order(1, {0, Phase::kTrain}, 7));
  ASSERT_THAT(checkpoint_names(), ElementsAre("step-0000000002-g1-m4", "step-0000000004-g1-m4",
                                              "step-0000000006-g1-m4", "step-0000000007-g1-m4"));
  for (const Step step : {2, 4, 6, 7}) {
    const std::string path = temporary_.path() + "/checkpoints/" + checkpoint_name({step, 1, 4});
    const auto loaded = read_checkpoint(path);
    ASSERT_TRUE(loaded.is_ok());
    ASSERT_EQ(loaded->state.tensors().size(), 1u);
    int64_t count = 0;
    ASSERT_EQ(loaded->state.bytes(), sizeof count);
    std::memcpy(&count, loaded->state.tensors()[0].data, sizeof count);
    EXPECT_EQ(count, static_cast<int64_t>(step));
  }
}

// No step was applied, yet the weights differ: one of their bits flipped during the evaluation.
TEST_F(RunnerTest, WeightsThatChangeAfterTheCheckBecomeNoCheckpoint) {
  job_.mutable_train()->set_check_every(100);
  engine_.on_evaluate = [this](Step step) {
    if (step == 5) engine_.count_ ^= 1 << 20;
  };
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_FALSE(std::filesystem::exists(temporary_.path() + "/checkpoints"));
  ASSERT_EQ(port_.checkpoints.size(), 1u);
  EXPECT_TRUE(port_.checkpoints[0].final());
  EXPECT_THAT(port_.checkpoints[0].error(), ::testing::HasSubstr("after step 5"));
  EXPECT_EQ(port_.last.code(), Code::kInternal);
}

// An epoch has three steps.
TEST_F(RunnerTest, TheEngineIsToldWhereTheRunMayEnd) {
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_FALSE(engine_.ends_.include(3));
  EXPECT_TRUE(engine_.ends_.include(5));
}

TEST_F(RunnerTest, WithPatienceTheRunMayEndAfterEachEvaluation) {
  job_.mutable_train()->set_patience(2);
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_TRUE(engine_.ends_.include(3));
  EXPECT_FALSE(engine_.ends_.include(4));
  EXPECT_TRUE(engine_.ends_.include(5));
}

TEST_F(RunnerTest, WithoutChecksNobodyLooks) {
  job_.mutable_train()->set_check_every(0);
  engine_.on_evaluate = [this](Step step) {
    if (step == 5) engine_.count_ ^= 1 << 20;
  };
  run(order(1, {0, Phase::kTrain}, 5));
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000005-g1-m4"));
}

TEST_F(RunnerTest, AnAgreedStopLeavesACheckpointOfItsStepAndNoEvaluation) {
  engine_.on_step = [this](Step step) {
    if (step == 2) engine_.request_stop();
  };
  run(order(1, {0, Phase::kTrain}, 100));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "step 1", "step 2", "leave STOPPED 3"));
  EXPECT_EQ(finished_, 0);
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000003-g1-m4"));
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000003-g1-m4");
  EXPECT_EQ(info->manifest.resume, (ResumePoint{3, Phase::kEval}));  // still to be done
}

TEST_F(RunnerTest, AnEndByTheScriptIsReportedFirstAndHasItsEvaluationAndCheckpoint) {
  engine_.script_ends_at = 3;
  engine_.on_step = [this](Step step) {
    if (step == 2) engine_.request_stop();  // the run is complete, and that is more
  };
  run(order(1, {0, Phase::kTrain}, 100));
  EXPECT_THAT(port_.events,
              ElementsAre("step 0", "step 1", "step 2", "end 3", "eval 3", "leave FINISHED 3"));
  EXPECT_EQ(finished_, 1);
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000003-g1-m4");
  EXPECT_EQ(info->manifest.resume, (ResumePoint{3, Phase::kCheckpoint}));
  EXPECT_EQ(info->manifest.ends_at, 3u);
}

TEST_F(RunnerTest, AtThePlannedEndTheScriptHasNothingToEnd) {
  engine_.script_ends_at = 3;
  run(order(1, {0, Phase::kTrain}, 3));
  EXPECT_THAT(port_.events,
              ElementsAre("step 0", "step 1", "step 2", "eval 3", "leave FINISHED 3"));
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000003-g1-m4");
  EXPECT_EQ(info->manifest.ends_at, 0u);
}

TEST_F(RunnerTest, AResumeLoadsTheCheckpointAndDoesTheEvaluationThatWasMissed) {
  engine_.count_ = 3;
  Manifest manifest = testing::manifest_of(3);
  auto written =
      write_checkpoint(*files_, temporary_.path() + "/c", testing::state_of(engine_), manifest);
  ASSERT_TRUE(written.is_ok());
  engine_.count_ = 0;
  StartOrder resume = order(2, {3, Phase::kEval}, 5);
  resume.start.mutable_source()->set_checkpoint_path(written->path);
  run(resume);
  EXPECT_THAT(port_.events,
              ElementsAre("eval 3", "step 3", "step 4", "eval 5", "leave FINISHED 5"));
  EXPECT_EQ(engine_.count_, 5);
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000005-g2-m4");
  EXPECT_EQ(info->manifest.lineage.resumed_from, written->name);
}

TEST_F(RunnerTest, ABestEvaluationIsKeptAtOnceAndOnlyOnce) {
  job_.mutable_eval()->set_every_steps(1);
  job_.mutable_checkpoint()->set_best("loss");
  job_.mutable_checkpoint()->set_every_steps(4);
  engine_.loss_after = [](Step step) { return step == 2 || step == 4 ? 1.0 / step : 2.0; };
  run(order(1, {0, Phase::kTrain}, 6));
  std::vector<Step> steps;
  for (const wire::CheckpointReport& report : port_.checkpoints) steps.push_back(report.step());
  EXPECT_THAT(steps, ElementsAre(1, 2, 4, 6));  // 4 is due and the best
}

TEST_F(RunnerTest, PatienceEndsTheRunWithItsLastCheckpoint) {
  job_.mutable_eval()->set_every_steps(1);
  job_.mutable_train()->set_patience(2);
  engine_.loss_after = [](Step step) { return step == 2 ? 1.0 : 2.0; };
  run(order(1, {0, Phase::kTrain}, 100));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "eval 1", "step 1", "eval 2", "step 2", "eval 3",
                                        "step 3", "eval 4", "leave FINISHED 4"));
  EXPECT_EQ(finished_, 1);
  EXPECT_THAT(checkpoint_names(), ElementsAre("step-0000000004-g1-m4"));
}

TEST_F(RunnerTest, AStartFromACheckpointTellsWhatIsBehindIt) {
  engine_.count_ = 3;
  Manifest manifest = testing::manifest_of(3);
  auto written =
      write_checkpoint(*files_, temporary_.path() + "/c", testing::state_of(engine_), manifest);
  ASSERT_TRUE(written.is_ok());
  job_.mutable_eval()->set_every_steps(1);
  job_.mutable_train()->set_patience(3);
  engine_.loss_after = [](Step) { return 2.0; };
  StartOrder resume = order(2, {3, Phase::kTrain}, 100);
  resume.start.mutable_source()->clear_members();
  resume.start.mutable_source()->set_checkpoint_path(written->path);
  wire::EvalTrack& track = *resume.start.mutable_evals();
  track.mutable_best()->set_step(1);
  track.mutable_best()->set_loss(1);
  track.mutable_last()->set_step(3);
  track.set_since(2);
  run(resume);
  EXPECT_THAT(port_.events, ElementsAre("step 3", "eval 4", "leave FINISHED 4"));
}

TEST_F(RunnerTest, AfterACloseTheNextStartGoesOnWhereTheGateSays) {
  std::optional<ResumePoint> promised;
  engine_.on_step = [&](Step step) {
    if (step != 2 || promised) return;
    gate_.close(1, [&](const Standing& standing) { promised = standing.applied; });
    mailbox_.put(order(2, *promised, 4));
  };
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_EQ(promised, (ResumePoint{2, Phase::kTrain}));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "step 1", "step 2", "eval 3", "step 3", "eval 4",
                                        "leave FINISHED 4"));
}

TEST_F(RunnerTest, AnEvaluationCanSeeThatItsGenerationIsClosed) {
  std::vector<bool> closed;
  engine_.loss_after = [&](Step) {
    closed.push_back(engine_.is_closed());
    gate_.close(1, [&](const Standing&) { closed.push_back(engine_.is_closed()); });
    mailbox_.end();
    return 1.0;
  };
  run(order(1, {0, Phase::kTrain}, 3));
  EXPECT_THAT(closed, ElementsAre(false, true));
}

TEST_F(RunnerTest, AFinishedGenerationIsLetGoWithoutAnAbort) {
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(engine_.ended_with, ElementsAre(Code::kOk));
}

// An engine that is resumed after its last step has no record to take the epoch from.
TEST_F(RunnerTest, TheManifestKnowsItsEpochWithoutAStepInThisGeneration) {
  engine_.go_to(6);
  run(order(2, {6, Phase::kCheckpoint}, 6));
  const auto info = read_checkpoint_info(temporary_.path() + "/checkpoints/step-0000000006-g2-m4");
  ASSERT_TRUE(info.is_ok());
  EXPECT_EQ(info->manifest.epoch, 1u);  // steps 3, 4 and 5
}

TEST_F(RunnerTest, AFinishedRunThatIsStartedAgainHasNothingToDo) {
  run(order(1, {0, Phase::kEnd}, 0));
  EXPECT_THAT(port_.events, ElementsAre("leave FINISHED 0"));
  EXPECT_THAT(port_.checkpoints, IsEmpty());
}

TEST_F(RunnerTest, TheWriterDoesNotLeaveBeforeItsCheckpointIsInTheJournal) {
  port_.instead_of_ack = [this] {
    mailbox_.close(1);
    gate_.close(1, [](const Standing&) {});
    mailbox_.end();
  };
  run(order(1, {0, Phase::kTrain}, 1));
  ASSERT_EQ(port_.checkpoints.size(), 1u);
  EXPECT_THAT(port_.events, ElementsAre("step 0", "eval 1"));
}

}  // namespace
}  // namespace lockstep
