// A session over the in-memory network against a scripted coordinator: how it becomes a member,
// promises, starts and ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::SessionTest;

TEST_F(SessionTest, RegistersPromisesAndStarts) {
  take_in();
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().member(), 0u);
  EXPECT_FALSE(registers[0].register_().has_state());
  EXPECT_EQ(session_->state(), Session::State::kMember);
  prepare(1);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 1u);
  EXPECT_FALSE(promises[0].promise().has_state());
  start(1);
  EXPECT_THAT(host_.starts, ElementsAre(1));
  EXPECT_EQ(session_->state(), Session::State::kStarted);
}

TEST_F(SessionTest, APromiseIsNeverSentBeforeTheRunningApplyEnded) {
  started();
  host_.hold_close = true;
  prepare(2);
  EXPECT_THAT(host_.closed_through, ElementsAre(0, 1));
  loop_.run_for(5'000);
  EXPECT_EQ(received(wire::Envelope::kPromise).size(), 1u);  // the promise of generation 1
  host_.held({1, {5, Phase::kTrain}, ResumePoint{8, Phase::kTrain}});
  loop_.run_for(5);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 2u);
  EXPECT_EQ(promises[0].promise().applied().step(), 8u);
  EXPECT_EQ(promises[0].promise().lived(), 1u);
  EXPECT_EQ(promises[0].promise().since().step(), 5u);
}

TEST_F(SessionTest, WhenANewerOneIsPreparedMeanwhileOnlyThatIsPromised) {
  started();
  (void)received(wire::Envelope::kPromise);
  host_.hold_close = true;
  prepare(2);
  auto first = std::move(host_.held);
  prepare(3);
  first({});
  host_.held({});
  loop_.run_for(5);
  const auto promises = received(wire::Envelope::kPromise);
  ASSERT_EQ(promises.size(), 1u);
  EXPECT_EQ(promises[0].promise().generation(), 3u);
}

TEST_F(SessionTest, WhatIsOlderIsDropped) {
  take_in(4, /*term=*/5);
  prepare(3, 5);
  start(3, 5);
  prepare(3, 5);
  prepare(2, 5);
  start(2, 5);
  prepare(9, 4);  // an older coordinator
  EXPECT_THAT(host_.closed_through, ElementsAre(2));
  EXPECT_THAT(host_.starts, ElementsAre(3));
  EXPECT_EQ(session_->term(), 5u);
}

TEST_F(SessionTest, AStartThatWasNotPromisedIsDropped) {
  take_in();
  start(1);
  EXPECT_THAT(host_.starts, IsEmpty());
  host_.hold_close = true;
  prepare(1);
  start(1);  // before the answer
  EXPECT_THAT(host_.starts, IsEmpty());
}

TEST_F(SessionTest, TheSameStartAgainChangesNothing) {
  started();
  start(1);
  EXPECT_THAT(host_.starts, ElementsAre(1));
}

TEST_F(SessionTest, APrepareAgainIsAnsweredAgain) {
  take_in();
  prepare(1);
  prepare(1);
  EXPECT_EQ(received(wire::Envelope::kPromise).size(), 2u);
  EXPECT_THAT(host_.closed_through, ElementsAre(0));
}

TEST_F(SessionTest, AfterALostConnectionItRegistersWithWhatItKnows) {
  started();
  (void)received(wire::Envelope::kRegister);
  host_.where = {1, {3, Phase::kTrain}, ResumePoint{8, Phase::kEval}};
  EXPECT_EQ(network_.cut("worker", "coordinator"), 1u);
  loop_.run_for(3'000);
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().member(), 4u);
  EXPECT_EQ(registers[0].register_().generation(), 1u);
  EXPECT_EQ(registers[0].register_().since().step(), 3u);
  EXPECT_TRUE(registers[0].register_().has_state());
  EXPECT_EQ(registers[0].register_().applied().step(), 8u);
  EXPECT_EQ(registers[0].register_().applied().phase(), static_cast<uint32_t>(Phase::kEval));
  EXPECT_EQ(session_->state(), Session::State::kStarted);
}

// Its step may be one that was rolled back.
TEST_F(SessionTest, HeartbeatsCarryNoProgressBeforeTheStateOfTheStartedGenerationIsInstalled) {
  started();
  host_.where = {};
  loop_.run_for(3'500);
  const auto beats = received(wire::Envelope::kHeartbeat);
  ASSERT_GE(beats.size(), 3u);
  EXPECT_EQ(beats.back().heartbeat().step(), 0u);
  EXPECT_EQ(beats.back().heartbeat().bucket(), 0u);
  EXPECT_EQ(beats.back().heartbeat().enqueued(), 0u);
  EXPECT_TRUE(beats.back().heartbeat().paused());
}

TEST_F(SessionTest, HeartbeatsCarryWhereTheWorkerIs) {
  started();
  host_.where.lived = 1;
  loop_.run_for(3'500);
  const auto beats = received(wire::Envelope::kHeartbeat);
  ASSERT_GE(beats.size(), 3u);
  EXPECT_EQ(beats[0].heartbeat().step(), 7u);
  EXPECT_EQ(beats[0].heartbeat().bucket(), 2u);
  EXPECT_EQ(beats[0].heartbeat().enqueued(), 5u);
  EXPECT_TRUE(beats[0].heartbeat().paused());
}

TEST_F(SessionTest, GoodbyeEndsWithItsCodeAndNothingFollows) {
  started();
  goodbye(75);
  EXPECT_THAT(host_.exit_codes, ElementsAre(75));
  EXPECT_EQ(host_.end.code(), Code::kCheckpointed);
  start(2);
  loop_.run_for(5'000);
  EXPECT_THAT(host_.exit_codes, ElementsAre(75));
  EXPECT_EQ(session_->state(), Session::State::kEnded);
}

TEST_F(SessionTest, AWorkerThatDoesNotFitTheRunSaysWhyAndEnds) {
  host_.fits = Status(Code::kUsage, "another job");
  take_in();
  EXPECT_THAT(host_.exit_codes, ElementsAre(64));
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().message(), "another job");
}

TEST_F(SessionTest, AWorkerThatIsNeverTakenInGivesUp) {
  loop_.run_for(130'000);
  EXPECT_THAT(host_.exit_codes, ElementsAre(70));
  EXPECT_EQ(host_.end.code(), Code::kUnavailable);
}

TEST_F(SessionTest, AStopRequestReachesTheWorker) {
  started();
  wire::Envelope envelope;
  envelope.mutable_stop()->set_reason("signal");
  say(envelope, 1);
  EXPECT_EQ(host_.stops, 1);
}

TEST_F(SessionTest, WhoIsPutOutBecauseItHangsSavesItsStacksFirst) {
  started();
  wire::Envelope envelope;
  envelope.mutable_evict()->set_save_stack(true);
  say(envelope, 1);
  EXPECT_EQ(host_.hangs, 1);
  EXPECT_THAT(host_.exit_codes, ElementsAre(70));
}

}  // namespace
}  // namespace lockstep
