#include "deploy/agent/exit_decision.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

ExitDecision decide(ProcessEnd end, bool over, bool stopping, uint32_t restarts) {
  return decide_after_exit({end, over, stopping, restarts});
}

constexpr ProcessEnd kDone{0, 0};
constexpr ProcessEnd kKilled{-1, 9};

TEST(ExitDecision, AWorkerThatFinishedOrCheckpointedIsNoDeath) {
  EXPECT_EQ(decide(kDone, false, false, 3).action, ExitAction::kExpected);
  EXPECT_EQ(decide({75, 0}, false, true, 3).action, ExitAction::kExpected);
}

TEST(ExitDecision, AfterGoodbyeNothingIsADeath) {
  EXPECT_EQ(decide(kKilled, true, false, 3).action, ExitAction::kExpected);
}

TEST(ExitDecision, ADeathIsReportedWhenTheBudgetIsEmpty) {
  const ExitDecision decision = decide(kKilled, false, false, 0);
  EXPECT_EQ(decision.action, ExitAction::kReport);
  EXPECT_STREQ(decision.reason, "no restarts left");
}

TEST(ExitDecision, ADeathWithinTheBudgetIsRestarted) {
  EXPECT_EQ(decide(kKilled, false, false, 1).action, ExitAction::kRestart);
  EXPECT_EQ(decide({70, 0}, false, false, 1).action, ExitAction::kRestart);
}

TEST(ExitDecision, NobodyIsRestartedIntoARunThatStops) {
  EXPECT_EQ(decide(kKilled, false, true, 3).action, ExitAction::kReport);
}

TEST(ExitDecision, AFailureThatWouldComeAgainIsNotTriedAgain) {
  for (int code : {64, 65, 66, 78}) {
    const ExitDecision decision = decide({code, 0}, false, false, 3);
    EXPECT_EQ(decision.action, ExitAction::kReport) << code;
    EXPECT_STREQ(decision.reason, "would fail again");
  }
}

}  // namespace
}  // namespace lockstep
