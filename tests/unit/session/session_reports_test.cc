// A session repeats what it tells the coordinator for the training thread until that is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::SessionTest;

TEST_F(SessionTest, RecordsAreSentAgainAfterALossUntilTheyAreAcknowledged) {
  started();
  applied_step(0);
  loop_.run_for(250);
  applied_step(1);
  loop_.run_for(250);
  EXPECT_THAT(received_batches(), ElementsAre(1, 2));
  acknowledge(1);
  network_.cut("worker", "coordinator");
  applied_step(2);
  loop_.run_for(3'000);
  EXPECT_THAT(received_batches(), IsEmpty());  // not before it is taken in again
  take_in();
  EXPECT_THAT(received_batches(), ElementsAre(2, 3));
  acknowledge(3);
  loop_.run_for(3'000);
  EXPECT_THAT(received_batches(), IsEmpty());
}

TEST_F(SessionTest, ACheckIsReportedAgainAfterALossUntilTheNextOneIsThere) {
  started();
  const auto check = [this](Step applied) {
    wire::CheckReport report;
    report.set_applied(applied);
    session_->report_check(1, report);
    loop_.run_for(5);
  };
  const auto reported = [this] {
    std::vector<Step> steps;
    for (const auto& m : received(wire::Envelope::kCheck)) steps.push_back(m.check().applied());
    return steps;
  };
  check(100);
  check(200);
  EXPECT_THAT(reported(), ElementsAre(100, 200));
  network_.cut("worker", "coordinator");
  loop_.run_for(1'000);
  got_.clear();
  check(300);
  take_in();
  EXPECT_THAT(reported(), ElementsAre(200, 300));
}

TEST_F(SessionTest, AnEndByTheScriptIsToldBeforeACheckpointAndAfterALossByTheRegistration) {
  started();
  const auto told = [this] {
    std::vector<Step> steps;
    for (const auto& m : received(wire::Envelope::kEnd)) steps.push_back(m.end().step());
    return steps;
  };
  session_->report_end(1, 7);
  loop_.run_for(5);
  EXPECT_THAT(told(), ElementsAre(7));
  host_.where = {1, {0, Phase::kTrain}, ResumePoint{7, Phase::kCheckpoint}, 7};
  (void)received(wire::Envelope::kRegister);
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_FALSE(registers.empty());
  EXPECT_EQ(registers.back().register_().ends_at(), 7u);
  take_in();
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(SessionTest, NobodyLeavesBeforeItsRecordsAreAcknowledged) {
  started();
  applied_step(0);
  session_->leave(1, wire::Leave::FINISHED, Status::ok(), ResumePoint{1, Phase::kEnd});
  loop_.run_for(500);
  EXPECT_THAT(received_batches(), ElementsAre(1));
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
  acknowledge(1);
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().applied().step(), 1u);
  EXPECT_THAT(host_.exit_codes, IsEmpty());
  goodbye(0);
  EXPECT_THAT(host_.exit_codes, ElementsAre(0));
}

TEST_F(SessionTest, AFailureIsToldAtOnce) {
  started();
  applied_step(0);
  session_->leave(1, wire::Leave::FAILED, Status(Code::kBadData, "bad file"), std::nullopt);
  loop_.run_for(50);
  const auto leaves = received(wire::Envelope::kLeave);
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(leaves[0].leave().code(), static_cast<uint32_t>(Code::kBadData));
}

// The agent's word of it may come too late, or never.
TEST_F(SessionTest, AFailureTellsTheSamplesInHandAndAnotherEndDoesNot) {
  for (const auto reason : {wire::Leave::DRAINED, wire::Leave::FAILED}) {
    if (session_->state() == Session::State::kJoining) started();
    host_.held_samples = {.process = 9, .slots = {{.step = 3, .slot = 2, .is_read = false}}};
    session_->leave(1, reason, Status(Code::kBadData, "bad file"), std::nullopt);
    loop_.run_for(50);
    const auto leaves = received(wire::Envelope::kLeave);
    ASSERT_EQ(leaves.size(), 1u);
    const wire::InHand& told = leaves[0].leave().in_hand();
    ASSERT_EQ(told.slots_size(), reason == wire::Leave::FAILED ? 1 : 0);
    for (const wire::SlotInHand& slot : told.slots()) EXPECT_EQ(slot.step(), 3u);
  }
}

// It was finished while the order to close was under way, and the next generation may need it.
TEST_F(SessionTest, NobodyLeavesAGenerationAfterANewerOneIsPrepared) {
  started();
  prepare(2);
  session_->leave(1, wire::Leave::FINISHED, Status::ok(), ResumePoint{1, Phase::kEnd});
  loop_.run_for(500);
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
}

class CheckpointReports : public SessionTest {
 protected:
  static constexpr const char* kName = "step-0000000010-g1-m4";

  // It is told once, and then the connection is lost.
  void report_and_lose() {
    started();
    wire::CheckpointReport report;
    report.set_name(kName);
    session_->report_checkpoint(1, report);
    loop_.run_for(50);
    EXPECT_EQ(received(wire::Envelope::kCheckpoint).size(), 1u);
    network_.cut("worker", "coordinator");
    loop_.run_for(3'000);
  }
  void acknowledge() {
    wire::Envelope ack;
    ack.mutable_checkpoint_ack()->set_name(kName);
    say(ack, 1);
  }
};

// The word is about another report of the same name, if it comes before this one is sent.
TEST_F(CheckpointReports, OneThatWasNotSentSinceALossIsSentWhateverWasAcknowledged) {
  report_and_lose();
  acknowledge();
  take_in();
  EXPECT_EQ(received(wire::Envelope::kCheckpoint).size(), 1u);
}

TEST_F(CheckpointReports, OneIsToldAgainUntilItIsInTheJournal) {
  report_and_lose();
  take_in();
  EXPECT_EQ(received(wire::Envelope::kCheckpoint).size(), 1u);
  acknowledge();
  EXPECT_THAT(host_.acks, ElementsAre(kName));
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  take_in();
  EXPECT_THAT(received(wire::Envelope::kCheckpoint), IsEmpty());
}

TEST_F(SessionTest, WhatAnOlderGenerationDidIsReportedButNobodyLeavesWithIt) {
  started();
  prepare(2);
  ASSERT_TRUE(session_->report_eval(1, {}).is_ok());
  session_->report_checkpoint(1, {});
  session_->leave(1, wire::Leave::FINISHED, Status::ok(), ResumePoint{10, Phase::kEnd});
  loop_.run_for(500);
  const auto batches = received(wire::Envelope::kStepRecords);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].generation(), 1u);
  EXPECT_EQ(batches[0].step_records().evals_size(), 1);
  EXPECT_EQ(received(wire::Envelope::kCheckpoint).size(), 1u);
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
}

TEST_F(SessionTest, APreparedGenerationMakesALeaveVoidThatWasNotAnsweredYet) {
  started();
  session_->leave(1, wire::Leave::FINISHED, Status::ok(), ResumePoint{10, Phase::kEnd});
  loop_.run_for(50);
  EXPECT_EQ(received(wire::Envelope::kLeave).size(), 1u);
  prepare(2);
  start(2);
  EXPECT_EQ(session_->state(), Session::State::kStarted);
  reconnect();
  EXPECT_THAT(received(wire::Envelope::kLeave), IsEmpty());
}

TEST_F(SessionTest, ADrainRequestIsSentAgainAfterEveryReconnect) {
  started();
  session_->drain("SIGTERM");
  session_->drain("SIGTERM");
  loop_.run_for(5);
  auto requests = received(wire::Envelope::kDrain);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].drain().reason(), "SIGTERM");
  reconnect();
  EXPECT_EQ(received(wire::Envelope::kDrain).size(), 1u);
}

TEST_F(SessionTest, ADrainRequestThatCameBeforeAnythingElseWaitsForTheRegistration) {
  session_->drain("SIGTERM");
  loop_.run_for(1'000);
  EXPECT_THAT(received(wire::Envelope::kDrain), IsEmpty());
  take_in();
  EXPECT_EQ(received(wire::Envelope::kDrain).size(), 1u);
}

// The coordinator that heard it may be gone before it did anything about it.
TEST_F(SessionTest, ASuspicionIsToldAgainUntilItsGenerationIsOver) {
  started();
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  session_->suspect(1, 7, "gone");
  loop_.run_for(50);
  EXPECT_THAT(received(wire::Envelope::kPeerSuspect), IsEmpty());
  take_in();
  const auto suspicions = received(wire::Envelope::kPeerSuspect);
  ASSERT_EQ(suspicions.size(), 1u);
  EXPECT_EQ(suspicions[0].peer_suspect().member(), 7u);
  EXPECT_EQ(suspicions[0].generation(), 1u);
  reconnect();
  EXPECT_EQ(received(wire::Envelope::kPeerSuspect).size(), 1u);
  prepare(2);
  session_->suspect(1, 7, "gone");
  reconnect();
  EXPECT_THAT(received(wire::Envelope::kPeerSuspect), IsEmpty());
}

}  // namespace
}  // namespace lockstep
