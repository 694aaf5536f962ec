// The places of an agent's workers: which of them count, are held or are free again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "comm/base/file.h"
#include "comm/base/json_logger.h"
#include "deploy/agent/log_bound.h"
#include "tests/unit/agent/worker_slots_world.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(WorkerSlotsTest, NobodyIsStartedForOneThatHadNoRestartsLeft) {
  use(0, 0);
  start(slots_->set_wanted(2));
  EXPECT_EQ(kill(1).decision.action, ExitAction::kReport);
  EXPECT_EQ(leave(0).decision.action, ExitAction::kExpected);
}

TEST_F(WorkerSlotsTest, AHeldPlaceIsNoneOnceTheAgentStopsOrFewerAreWanted) {
  for (const bool stops : {true, false}) {
    use(5, 0);
    ASSERT_THAT(slots_->set_wanted(2), ElementsAre(0, 1));
    start({0});
    slots_->set_unfit(1);
    ASSERT_TRUE(slots_->hold_if_unfit(1));
    ASSERT_EQ(slots_->gpu_places().size(), 2u);
    if (stops)
      slots_->forget_restarts();
    else
      EXPECT_THAT(slots_->set_wanted(1), IsEmpty());
    EXPECT_EQ(slots_->gpu_places().size(), 1u);
    EXPECT_FALSE(slots_->set_fit(1)) << "nobody is started there";
    slots_->signal_all(SIGKILL);
  }
}

TEST_F(WorkerSlotsTest, OnlyAHeldPlaceIsReleased) {
  use(5, 0);
  start(slots_->set_wanted(1));
  EXPECT_EQ(slots_->release_unfit(0), std::nullopt);
  EXPECT_FALSE(slots_->waits_for_restart(0));
}

// It was started there because the run needed it.
TEST_F(WorkerSlotsTest, AWorkerThatBeganOnAnUnfitGpuAndLeavesIsFollowedOnceTheGpuIsFit) {
  use(5, 0);
  ASSERT_THAT(slots_->set_wanted(1), ElementsAre(0));
  slots_->set_unfit(0);
  ASSERT_TRUE(slots_->hold_if_unfit(0));
  ASSERT_EQ(slots_->release_unfit(0), 0u);
  start({0});
  EXPECT_FALSE(slots_->set_fit(0)) << "it has its worker";
  EXPECT_EQ(leave(0).decision.action, ExitAction::kRestart);
}

// Else the agent's log would say it every few seconds.
TEST_F(WorkerSlotsTest, ALogThatCannotBeBoundedIsNamedOnce) {
  logger_ = std::move(open_json_logger(directory_ + "/agent", "agent", false)).value();
  use(5, 0);
  start(slots_->set_wanted(1));
  const std::string log = directory_ + "/logs/worker-0.stderr";
  const LogBound bound;
  std::filesystem::resize_file(log, static_cast<uintmax_t>(bound.beginning + bound.newest + 1));
  std::filesystem::create_directory(log + ".1");
  slots_->bound_logs();
  slots_->bound_logs();
  const std::string said = read_file(directory_ + "/agent", 1 << 20).value();
  const size_t first = said.find("log_not_bounded");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(said.find("log_not_bounded", first + 1), std::string::npos);
}

}  // namespace
}  // namespace lockstep
