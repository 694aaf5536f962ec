// Tests which plan a worker votes for.
#include <gtest/gtest.h>

#include "tests/unit/session/counting_runner.h"

namespace lockstep {
namespace {

using testing::RunnerTest;

TEST_F(RunnerTest, APlanThatWasClosedIsNotVotedFor) {
  StartOrder next = order(2, {1, Phase::kTrain}, 4);
  next.planned = true;
  mailbox_.plan(next);
  EXPECT_TRUE(mailbox_.wants_switch(1));
  EXPECT_FALSE(mailbox_.wants_switch(2));
  mailbox_.close(2);
  EXPECT_FALSE(mailbox_.wants_switch(1));
  mailbox_.plan(next);
  EXPECT_FALSE(mailbox_.wants_switch(1));
}

// It is in no generation any more, whatever its training thread still does in an old one.
TEST_F(RunnerTest, APlanThatLetsThisWorkerJoinIsTakenWhenIdleAndNeverVotedFor) {
  StartOrder next = order(2, {1, Phase::kTrain}, 4);
  next.planned = true;
  next.start.mutable_source()->set_members(0, 9);
  mailbox_.plan(next);
  EXPECT_FALSE(mailbox_.wants_switch(1));
  const auto taken = mailbox_.next();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->generation, 2u);
}

}  // namespace
}  // namespace lockstep
