// Tests what the training thread says, and to whom, when it cannot go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/fails_with.h"
#include "tests/support/state_of.h"
#include "tests/unit/session/counting_runner.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RunnerTest;

TEST_F(RunnerTest, AFailureIsReportedWithItsCode) {
  engine_.fail_at = 1;
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "leave FAILED 1"));
  EXPECT_EQ(port_.last.code(), Code::kBadData);
  EXPECT_EQ(failure_.code(), Code::kBadData);
}

// The prepare waits for the apply, so the coordinator would not hear of it otherwise. The member
// does not enter a start that is there already for the member that it becomes.
TEST_F(RunnerTest, AFailedApplyIsAFailureAlsoWhereTheGenerationWasClosedMeanwhile) {
  bool is_answered = false;
  port_.leave_ends = false;
  engine_.on_apply = [&](Step step) {
    if (step == 0) return Status::ok();
    gate_.close(1, [&](const Standing&) { is_answered = true; });
    mailbox_.put(order(2, {1, Phase::kTrain}, 4));
    return Status(Code::kInternal, "after_step raised");
  };
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "leave FAILED 1"));
  EXPECT_THAT(failure_, FailsWith(Code::kInternal, Says("after_step raised")));
  EXPECT_FALSE(is_answered);
}

// In the next generation it would be raised at the first slot that is asked for there.
TEST_F(RunnerTest, WhatAScriptRaisesIsAFailureAlsoWhereTheGenerationWasClosedMeanwhile) {
  engine_.on_apply = [&](Step) {
    gate_.close(1, [](const Standing&) {});
    mailbox_.put(order(2, {1, Phase::kTrain}, 4));
    return Status::ok();
  };
  engine_.fail_at = 1;
  engine_.fail_with = Status(Code::kRaised, "KeyError");
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(port_.events, ElementsAre("step 0", "leave FAILED 1"));
  EXPECT_EQ(failure_.code(), Code::kRaised);
  EXPECT_EQ(engine_.ended_with.size(), 1u) << "it began generation 2";
}

TEST_F(RunnerTest, AnApplyThatIsAbortedIsAFailureToo) {
  engine_.on_apply = [](Step) { return Status(Code::kAborted, "the script is gone"); };
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(port_.events, ElementsAre("leave FAILED 0"));
}

TEST_F(RunnerTest, AFailedGenerationIsAbortedBeforeTheEngineLetsGoOfIt) {
  engine_.fail_at = 1;
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(engine_.ended_with, ElementsAre(Code::kAborted));
}

TEST_F(RunnerTest, AFinalCheckpointThatCannotBeWrittenIsAFailureOfTheRun) {
  std::ofstream(temporary_.path() + "/checkpoints") << "a file in the way";
  run(order(1, {0, Phase::kTrain}, 1));
  EXPECT_EQ(port_.events.back(), "leave FAILED 1");
  ASSERT_EQ(port_.checkpoints.size(), 1u);
  EXPECT_THAT(port_.checkpoints[0].error(), HasSubstr("checkpoints"));
}

TEST_F(RunnerTest, APeerThatCannotBeReachedIsSuspectedAndNoFailureOfThisWorker) {
  context_.fails = Status(Code::kUnavailable, "nobody there");
  run(order(1, {0, Phase::kTrain}, 4));
  EXPECT_THAT(port_.events, ElementsAre("suspect 4"));
  EXPECT_TRUE(failure_.is_ok());
}

TEST_F(RunnerTest, AMemberThatIsNotAtTheResumePointFailsAndSaysWhy) {
  engine_.go_to(7);
  run(order(2, {6, Phase::kTrain}, 9));
  EXPECT_THAT(port_.events, ElementsAre("leave FAILED 0"));
  EXPECT_THAT(port_.last, FailsWith(Code::kInternal, Names("step 7")));
  EXPECT_THAT(port_.last.message(), Names("step 6"));
}

// Read as a whole before anything of this worker's own state is given up.
TEST_F(RunnerTest, ACheckpointOfAnotherModelIsAFailureThatNamesTheTensorAndChangesNothing) {
  testing::TestState other = testing::TestState::small(1);
  const auto written =
      write_checkpoint(*files_, temporary_.path() + "/c", other.tensors(), testing::manifest_of(3));
  ASSERT_TRUE(written.is_ok());
  engine_.count_ = 41;
  StartOrder resume = order(2, {3, Phase::kTrain}, 9);
  resume.start.mutable_source()->set_checkpoint_path(written->path);
  run(resume);
  EXPECT_THAT(port_.events, ElementsAre("leave FAILED 0"));
  EXPECT_THAT(port_.last, FailsWith(Code::kBadData, Names("'bn.batches'")));
  EXPECT_THAT(port_.last.message(), HasSubstr(written->path));
  EXPECT_EQ(engine_.count_, 41);
}

// The next term of the run takes an older one; a verdict on the data would end the run.
TEST_F(RunnerTest, ACheckpointThatWasDamagedSinceItWasChosenIsNoVerdictOnTheRun) {
  engine_.count_ = 3;
  const auto written = write_checkpoint(*files_, temporary_.path() + "/c",
                                        testing::state_of(engine_), testing::manifest_of(3));
  ASSERT_TRUE(written.is_ok());
  std::ofstream(written->path + "/" + kModelFile) << "damaged";
  StartOrder resume = order(2, {3, Phase::kTrain}, 9);
  resume.start.mutable_source()->set_checkpoint_path(written->path);
  run(resume);
  EXPECT_THAT(port_.events, ElementsAre("leave FAILED 0"));
  EXPECT_THAT(port_.last, FailsWith(Code::kInternal, Names(written->path)));
}

}  // namespace
}  // namespace lockstep
