// Planned changes as a session sees them: plans that come, and switches that the members agreed on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::SessionTest;

TEST_F(SessionTest, APlannedChangeReachesAMemberOnceHoweverOftenItIsSaid) {
  started();
  plan(2);
  plan(2);
  EXPECT_THAT(host_.plans, ElementsAre(2));
  EXPECT_EQ(session_->state(), Session::State::kStarted);
}

TEST_F(SessionTest, APlannedChangeReachesAWorkerThatIsInNoGenerationYet) {
  take_in();
  plan(2);
  EXPECT_THAT(host_.plans, ElementsAre(2));
  switch_to(2, {7, Phase::kTrain});
  EXPECT_EQ(session_->state(), Session::State::kStarted);
  EXPECT_EQ(session_->generation(), 2u);
}

TEST_F(SessionTest, APlannedChangeThatIsNotNewerThanWhatIsPromisedIsDropped) {
  take_in();
  prepare(3);
  start(3);
  plan(3);
  plan(2);
  prepare(5);
  plan(4);
  plan(6);
  host_.hold_close = true;
  prepare(7);
  plan(8);
  EXPECT_THAT(host_.plans, ElementsAre(6));
}

TEST_F(SessionTest, AnOlderPlanDoesNotComeBackOnceANewerOneIsKnown) {
  started();
  plan(3);
  plan(2);
  EXPECT_THAT(host_.plans, ElementsAre(3));
}

TEST_F(SessionTest, AnAgreedSwitchIsToldAtOnceAndBehindTheRecordsOfTheGenerationBefore) {
  started();
  applied_step(0);
  plan(2);
  got_.clear();
  switch_to(2, {1, Phase::kEval});
  ASSERT_EQ(got_.size(), 2u);
  EXPECT_EQ(got_[0].body_case(), wire::Envelope::kStepRecords);
  EXPECT_EQ(got_[0].generation(), 1u);
  ASSERT_EQ(got_[1].body_case(), wire::Envelope::kSwitched);
  EXPECT_EQ(got_[1].generation(), 2u);
  EXPECT_EQ(got_[1].switched().since().step(), 1u);
  EXPECT_EQ(got_[1].switched().since().phase(), static_cast<uint32_t>(Phase::kEval));
  EXPECT_EQ(session_->generation(), 2u);
  plan(2);  // a coordinator that has not heard of it yet
  start(2);
  EXPECT_THAT(host_.plans, ElementsAre(2));
  EXPECT_THAT(host_.starts, ElementsAre(1));
}

TEST_F(SessionTest, ASwitchWithoutAConnectionIsToldByTheNextRegister) {
  started();
  plan(2);
  (void)received(wire::Envelope::kRegister);
  network_.cut("worker", "coordinator");
  host_.where = {2, {1, Phase::kTrain}, ResumePoint{1, Phase::kTrain}};
  session_->switched(2, {1, Phase::kTrain});
  applied_step(1, 2);
  loop_.run_for(3'000);
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().generation(), 2u);
  EXPECT_EQ(registers[0].register_().since().step(), 1u);
  take_in();
  EXPECT_THAT(received(wire::Envelope::kSwitched), IsEmpty());
  EXPECT_THAT(received_batches(), ElementsAre(1));
}

TEST_F(SessionTest, ASwitchBetweenRegisterAndItsAnswerIsToldAfterTheAnswer) {
  started();
  plan(2);
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  const auto registers = received(wire::Envelope::kRegister);
  EXPECT_EQ(registers.back().register_().generation(), 0u);
  switch_to(2, {1, Phase::kTrain});
  EXPECT_THAT(received(wire::Envelope::kSwitched), IsEmpty());
  take_in();
  EXPECT_EQ(received(wire::Envelope::kSwitched).size(), 1u);
}

TEST_F(SessionTest, ASwitchIsToldByThePromiseIfANewerGenerationWasPreparedMeanwhile) {
  started();
  plan(2);
  (void)received(wire::Envelope::kPromise);
  host_.hold_close = true;
  prepare(3);
  switch_to(2, {1, Phase::kTrain});
  EXPECT_EQ(session_->state(), Session::State::kClosing);
  EXPECT_THAT(received(wire::Envelope::kSwitched), IsEmpty());
  host_.held(host_.where);
  loop_.run_for(5);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 3u);
  EXPECT_EQ(promises[0].promise().lived(), 2u);
  start(3);
  EXPECT_THAT(host_.starts, ElementsAre(1, 3));
}

TEST_F(SessionTest, AfterAPrepareTheSameNumberMayNotBePlannedAgain) {
  started();
  plan(2);
  prepare(3);
  start(3);
  plan(2);
  plan(4);
  EXPECT_THAT(host_.plans, ElementsAre(2, 4));
  EXPECT_THAT(host_.closed_through, ElementsAre(0, 2));  // the planned one with the present one
}

TEST_F(SessionTest, WhoIsLeftOutLeavesOnceItsRecordsAreAcknowledged) {
  started();
  plan(2);
  applied_step(0);
  session_->leave(1, wire::Leave::DRAINED, Status::ok(), ResumePoint{1, Phase::kTrain});
  loop_.run_for(500);
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
  acknowledge(1);
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().reason(), wire::Leave::DRAINED);
  EXPECT_EQ(leaves[0].generation(), 1u);
}

}  // namespace
}  // namespace lockstep
