// A coordinator that takes a worker in under another member number, and what is forgotten then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_world.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::SessionTest;

TEST_F(SessionTest, ANewIdentityForgetsEverythingOfTheOldOne) {
  started();
  host_.where = {1, {0, Phase::kTrain}, ResumePoint{2, Phase::kTrain}};
  applied_step(0);
  ASSERT_TRUE(session_->report_eval(1, {}).is_ok());
  loop_.run_for(250);
  plan(2);
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  got_.clear();
  take_in(9);
  EXPECT_THAT(host_.forgotten_through, ElementsAre(2));  // with the change that was planned
  EXPECT_EQ(session_->member(), 9u);
  EXPECT_EQ(session_->generation(), 0u);
  EXPECT_EQ(session_->state(), Session::State::kMember);

  // The training thread still says this of the old life.
  applied_step(1);
  applied_step(1, 2);
  ASSERT_TRUE(session_->report_eval(1, {}).is_ok());
  session_->switched(2, {1, Phase::kTrain});
  session_->suspect(2, 3, "gone");
  session_->leave(2, wire::Leave::FAILED, Status(Code::kInternal, "x"), std::nullopt);
  loop_.run_for(500);
  for (const auto kind : {wire::Envelope::kStepRecords, wire::Envelope::kSwitched,
                          wire::Envelope::kPeerSuspect, wire::Envelope::kLeave})
    EXPECT_THAT(received(kind), IsEmpty()) << kind;
  EXPECT_EQ(session_->state(), Session::State::kMember);

  reconnect(9);
  const auto registers = received(wire::Envelope::kRegister);
  ASSERT_EQ(registers.size(), 1u);
  EXPECT_EQ(registers[0].register_().member(), 9u);
  EXPECT_EQ(registers[0].register_().generation(), 0u);
  EXPECT_FALSE(registers[0].register_().has_state());
  EXPECT_EQ(host_.forgotten_through.size(), 1u);

  prepare(3);
  start(3);
  applied_step(5, 3);
  loop_.run_for(250);
  EXPECT_THAT(received_batches(), ElementsAre(1));
  EXPECT_THAT(host_.starts, ElementsAre(1, 3));
}

// The training thread said so between the registration and its answer.
TEST_F(SessionTest, AnEndByTheScriptOfTheOldIdentityIsNotToldByTheNewOne) {
  started();
  network_.cut("worker", "coordinator");
  loop_.run_for(3'000);
  got_.clear();
  session_->report_end(1, 7);
  take_in(9);
  loop_.run_for(500);
  EXPECT_THAT(received(wire::Envelope::kEnd), IsEmpty());
}

TEST_F(SessionTest, AnAnswerOfTheOldIdentityIsNotGivenByTheNewOne) {
  started();
  host_.hold_close = true;
  prepare(2);
  reconnect(9);
  (void)received(wire::Envelope::kPromise);
  host_.held({1, {0, Phase::kTrain}, ResumePoint{2, Phase::kTrain}});
  loop_.run_for(50);
  EXPECT_THAT(received(wire::Envelope::kPromise), IsEmpty());
  EXPECT_EQ(session_->state(), Session::State::kMember);
}

TEST_F(SessionTest, TheSameIdentityAgainForgetsNothing) {
  started();
  applied_step(0);
  loop_.run_for(250);
  (void)received_batches();
  reconnect(4);
  EXPECT_THAT(host_.forgotten_through, IsEmpty());
  EXPECT_THAT(received_batches(), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep
