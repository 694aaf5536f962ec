#include "deploy/cli/run/supervised_child.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>

#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

class SupervisedChildTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ + "/logs");
    child_.emplace("agent", directory_);
  }

  void run(const std::string& command, int64_t now_ms) {
    ASSERT_TRUE(child_->start({"/bin/sh", "-c", command}, now_ms).is_ok());
    int status = 0;
    ASSERT_EQ(::waitpid(child_->pid(), &status, 0), child_->pid());
    child_->ended(ProcessEnd::from_wait_status(status));
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
  std::optional<SupervisedChild> child_;
};

TEST_F(SupervisedChildTest, OnlyAnEndThatItDidNotChooseIsADeath) {
  for (const int code : {0, 64, 65, 66, 70, 75, 78}) {
    run("exit " + std::to_string(code), 0);
    EXPECT_FALSE(child_->died()) << code;
  }
  for (const char* command : {"exit 1", "exit 134", "kill -9 $$", "kill -15 $$"}) {
    run(command, 0);
    EXPECT_TRUE(child_->died()) << command;
  }
}

TEST_F(SupervisedChildTest, ADeathIsToldWithItsPidAndSignal) {
  run("kill -9 $$", 0);
  EXPECT_EQ(child_->death_text(), "the agent (pid " + std::to_string(child_->pid()) +
                                      ") was killed by signal 9 (Killed)");
}

TEST_F(SupervisedChildTest, ItsLastWordsNeedNoRoomOnADisk) {
  ASSERT_TRUE(child_
                  ->start({"/bin/sh", "-c", "printf 'no room\\nat all' > /proc/self/fd/$2; exit 70",
                           "/bin/sh"},
                          0,
                          /*leaves_words=*/true)
                  .is_ok());
  int status = 0;
  ASSERT_EQ(::waitpid(child_->pid(), &status, 0), child_->pid());
  EXPECT_EQ(WEXITSTATUS(status), 70);
  EXPECT_EQ(child_->last_words(), "no room\nat all");
  run("exit 70", 0);
  EXPECT_EQ(child_->last_words(), "") << "it is another process";
}

TEST_F(SupervisedChildTest, TheFirstRestartIsAtOnceAndQuickDeathsWaitLonger) {
  run("kill -9 $$", 0);
  EXPECT_EQ(child_->take_restart(10), 0);
  EXPECT_FALSE(child_->is_over());
  run("kill -9 $$", 10);
  EXPECT_EQ(child_->take_restart(20), limits::kRestartPauseFirstMs);
  run("kill -9 $$", 20);
  EXPECT_EQ(child_->take_restart(20 + limits::kQuickDeathMs), 0) << "it had lived for a while";
}

TEST_F(SupervisedChildTest, ItsRestartsEndWithItsBudget) {
  run("kill -9 $$", 0);  // each time after it has lived for a while
  for (uint32_t i = 1; i <= limits::kSupervisedRestarts; ++i)
    EXPECT_TRUE(child_->take_restart(limits::kQuickDeathMs * i).has_value());
  EXPECT_FALSE(child_->take_restart(limits::kQuickDeathMs * 200).has_value());
  EXPECT_TRUE(child_->take_restart(limits::kQuickDeathMs + limits::kRestartWindowMs).has_value());
}

TEST_F(SupervisedChildTest, WhatCannotRunHereIsNotStartedAgain) {
  for (const char* command : {"exit 127", "exit 126"}) {
    run(command, 0);
    EXPECT_TRUE(child_->died());
    EXPECT_FALSE(child_->take_restart(10'000).has_value()) << command;
  }
}

TEST_F(SupervisedChildTest, WhatAlwaysDiesSoonAfterItsStartIsNotStartedForEver) {
  uint32_t restarts = 0;
  run("kill -9 $$", 0);
  while (child_->take_restart(1).has_value() && restarts < 100) ++restarts;
  EXPECT_EQ(restarts + 1, limits::kQuickDeaths);
  run("kill -9 $$", 100'000);
  EXPECT_TRUE(child_->take_restart(200'000).has_value()) << "it had lived for a while";
}

TEST_F(SupervisedChildTest, AForgottenRestartIsTheEnd) {
  run("kill -9 $$", 0);
  EXPECT_TRUE(child_->take_restart(0).has_value());
  child_->forget_restart();
  EXPECT_TRUE(child_->is_over());
  EXPECT_FALSE(child_->waits_for_restart());
}

}  // namespace
}  // namespace lockstep
