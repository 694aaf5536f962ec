#include "deploy/agent/exit_decision.h"

#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "deploy/agent/restart_budget.h"

namespace lockstep {
namespace {

constexpr ProcessEnd kDone{0, 0};
constexpr ProcessEnd kKilled{-1, 9};
constexpr ProcessEnd kTerminated{-1, 15};
constexpr ProcessEnd kCheckpointed{75, 0};

ExitFacts facts(ProcessEnd end) {
  ExitFacts facts;
  facts.end = end;
  facts.crashes_left = 3;
  facts.preemptions_left = 3;
  facts.quick_deaths = 1;
  return facts;
}

TEST(ExitDecision, AWorkerThatFinishedOrWasLeftOutIsNoDeath) {
  EXPECT_EQ(decide_after_exit(facts(kDone)).action, ExitAction::kExpected);
}

TEST(ExitDecision, AfterGoodbyeNothingIsADeath) {
  ExitFacts over = facts(kKilled);
  over.run_is_over = true;
  EXPECT_EQ(decide_after_exit(over).action, ExitAction::kExpected);
}

TEST(ExitDecision, ACrashIsStartedAgainAtOnceFromItsOwnBudget) {
  ExitFacts crash = facts(kKilled);
  crash.preemptions_left = 0;
  const ExitDecision decision = decide_after_exit(crash);
  EXPECT_EQ(decision.action, ExitAction::kRestart);
  EXPECT_EQ(decision.cause, ExitCause::kCrash);
  EXPECT_EQ(decision.pause_ms, 0);
}

TEST(ExitDecision, APreemptionIsTakenFromItsOwnBudget) {
  for (const ProcessEnd& end : {kTerminated, kCheckpointed}) {
    ExitFacts preemption = facts(end);
    preemption.crashes_left = 0;
    const ExitDecision decision = decide_after_exit(preemption);
    EXPECT_EQ(decision.action, ExitAction::kRestart);
    EXPECT_EQ(decision.cause, ExitCause::kPreemption);
    preemption.preemptions_left = 0;
    EXPECT_EQ(decide_after_exit(preemption).action, ExitAction::kReport);
  }
}

TEST(ExitDecision, WithAnEmptyBudgetADeathIsOnlyReported) {
  ExitFacts crash = facts(kKilled);
  crash.crashes_left = 0;
  const ExitDecision decision = decide_after_exit(crash);
  EXPECT_EQ(decision.action, ExitAction::kReport);
  EXPECT_STREQ(decision.reason, "no restarts left");
}

TEST(ExitDecision, NobodyIsStartedInPlaceOfASurplusWorker) {
  ExitFacts surplus = facts(kKilled);
  surplus.is_wanted = false;
  EXPECT_EQ(decide_after_exit(surplus).action, ExitAction::kReport);
  EXPECT_STREQ(decide_after_exit(surplus).reason, "fewer workers are wanted");
}

TEST(ExitDecision, NobodyIsStartedIntoARunThatStops) {
  ExitFacts stopping = facts(kKilled);
  stopping.stop_requested = true;
  EXPECT_EQ(decide_after_exit(stopping).action, ExitAction::kReport);
  for (const ProcessEnd& end : {kTerminated, kCheckpointed}) {
    stopping.end = end;
    EXPECT_EQ(decide_after_exit(stopping).action, ExitAction::kExpected);
  }
}

TEST(ExitDecision, AFailureThatWouldComeAgainIsNotTriedAgain) {
  for (int code : {64, 65, 66, 78}) {
    const ExitDecision decision = decide_after_exit(facts({code, 0}));
    EXPECT_EQ(decision.action, ExitAction::kReport) << code;
    EXPECT_STREQ(decision.reason, "would fail again");
  }
}

TEST(ExitDecision, AnExitThatTheWorkerChoseWaitsForTheCoordinatorsWord) {
  for (int code : {70, 75})
    EXPECT_EQ(decide_after_exit(facts({code, 0})).pause_ms, limits::kRestartAfterExitMs) << code;
}

TEST(RestartPause, GrowsWithQuickDeathsUpToItsLimit) {
  EXPECT_EQ(restart_pause_ms(0), 0);
  EXPECT_EQ(restart_pause_ms(1), 0);
  EXPECT_EQ(restart_pause_ms(2), limits::kRestartPauseFirstMs);
  EXPECT_EQ(restart_pause_ms(3), 2 * limits::kRestartPauseFirstMs);
  EXPECT_EQ(restart_pause_ms(4'000'000'000), limits::kRestartPauseMaxMs);
}

TEST(RestartBudget, IsOfTheLastWindowOnly) {
  RestartBudget budget(2, 1'000);
  EXPECT_EQ(budget.left(0), 2u);
  budget.spend(0);
  budget.spend(600);
  EXPECT_EQ(budget.left(999), 0u);
  EXPECT_EQ(budget.left(1'000), 1u);
  EXPECT_EQ(budget.left(1'600), 2u);
}

TEST(RestartBudget, OfNoneHasNone) {
  EXPECT_EQ(RestartBudget(0, 1'000).left(5), 0u);
}

}  // namespace
}  // namespace lockstep
