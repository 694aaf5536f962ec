// Tests when an agent starts a coordinator of its own, and when it starts it again.
#include "deploy/agent/hosted_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "comm/base/file.h"
#include "comm/run/directory/claim.h"
#include "comm/run/directory/run_files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// The coordinator is a shell script.
class HostedCoordinatorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ + "/logs");
    is("echo \"$@\"; exit 75");
    use(/*may_claim=*/true);
    EXPECT_TRUE(write_pulse(directory_, {.term = 3, .count = 5, .exit_code = {}}).is_ok());
    EXPECT_TRUE(claim_term(directory_, {.term = 3, .seat = "other", .journal = "j"}).is_ok());
  }
  void TearDown() override {
    hosted_->signal(SIGKILL);
    while (::wait(nullptr) > 0) {
    }
  }

  // Makes this script the coordinator's program.
  void is(const std::string& script) {
    ASSERT_TRUE(
        replace_file(directory_ + "/coordinator", "#!/bin/sh\n" + script + "\n", 0755).is_ok());
  }
  // The first program serves the run from the start, the second never does.
  void serves() {
    is("cd " + directory_ +
       "\necho '{\"pid\": '$$', \"run_id\": \"r\", \"http\": \"127.0.0.1:1\", "
       "\"control\": \"127.0.0.1:2\"}' > made\nmv made coordinator.json\nexec sleep 1000");
  }
  void never_serves() { is("exec sleep 1000"); }

  // Looks every second for `ms`.
  std::optional<int> look_for(int64_t ms) {
    std::optional<int> ended;
    for (const int64_t end_ms = now_ms_ + ms; now_ms_ < end_ms && !ended; now_ms_ += kPulseLookMs)
      ended = hosted_->look(now_ms_);
    return ended;
  }
  void start() {
    for (int looks = 0; looks < 40 && !hosted_->is_running(); ++looks)
      EXPECT_EQ(look_for(kPulseLookMs), std::nullopt);
    ASSERT_TRUE(hosted_->is_running());
  }

  // Reaps the only child.
  Reaped reap() {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    return {pid, ProcessEnd::from_wait_status(status)};
  }
  HostedCoordinator::Ended end() { return hosted_->ended(reap(), now_ms_); }
  HostedCoordinator::Ended end_with(ProcessEnd end) {
    hosted_->signal(SIGKILL);
    return hosted_->ended({reap().pid, end}, now_ms_);
  }

  void use(bool may_claim) {
    hosted_.emplace(HostedCoordinatorOptions{.program = directory_ + "/coordinator",
                                             .run_dir = directory_,
                                             .node = "here",
                                             .log_node = "here",
                                             .may_claim = may_claim},
                    *logger_);
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
  std::unique_ptr<Logger> logger_ = null_logger();
  int64_t now_ms_ = 1'000'000;
  std::optional<HostedCoordinator> hosted_;
};

TEST_F(HostedCoordinatorTest, AfterAPulseThatStandsStillItTakesTheRunAfterTheNewestTerm) {
  EXPECT_EQ(look_for(kStillMs), std::nullopt);
  EXPECT_FALSE(hosted_->is_running());
  start();
  (void)reap();
  const std::string words = read_file(directory_ + "/logs/coordinator-here.stderr", 4096).value();
  EXPECT_THAT(words, HasSubstr("--run-dir " + directory_ + " --take-over --seat here:"));
  EXPECT_THAT(words, EndsWith("--after 3\n"));
}

TEST_F(HostedCoordinatorTest, WhereTheCoordinatorHasANameNobodyElseTakesItsPlace) {
  use(/*may_claim=*/false);
  EXPECT_EQ(look_for(2 * kStillMs), std::nullopt);
  EXPECT_FALSE(hosted_->is_running());
}

TEST_F(HostedCoordinatorTest, ARunThatHasEndedIsNotTakenAndGivesItsCode) {
  EXPECT_TRUE(write_pulse(directory_, {.term = 3, .count = 6, .exit_code = 75}).is_ok());
  EXPECT_EQ(look_for(2 * kStillMs), 75);
  EXPECT_FALSE(hosted_->is_running());
}

// Another one was faster, and gets as long as the one before had.
TEST_F(HostedCoordinatorTest, AfterOneThatWasTooLateItWatchesFromAnew) {
  start();
  const auto ended = end();
  EXPECT_TRUE(ended.was_ours);
  EXPECT_EQ(ended.restart_after_ms, std::nullopt);
  EXPECT_EQ(look_for(kStillMs), std::nullopt);
  EXPECT_FALSE(hosted_->is_running());
  EXPECT_EQ(look_for(2 * kPulseLookMs), std::nullopt);
  EXPECT_TRUE(hosted_->is_running());
}

TEST_F(HostedCoordinatorTest, OneThatNamedATroubleOrCannotRunIsNotStartedAgain) {
  for (const int code : {78, 127}) {
    use(true);
    never_serves();
    start();
    EXPECT_EQ(end_with({code, 0}).restart_after_ms, std::nullopt) << code;
    hosted_->start_again(now_ms_);
    ASSERT_FALSE(hosted_->is_running()) << code;
    EXPECT_EQ(look_for(2 * kStillMs), std::nullopt);
    ASSERT_FALSE(hosted_->is_running()) << code;
  }
}

TEST_F(HostedCoordinatorTest, DeathsAreFollowedByANewOneUntilTheBudgetIsSpent) {
  never_serves();
  start();
  now_ms_ += limits::kQuickDeathMs;
  uint32_t restarts = 0;
  while (const auto after_ms = end_with({-1, SIGKILL}).restart_after_ms) {
    EXPECT_EQ(*after_ms, 0) << "it has lived for long";
    ASSERT_LT(restarts++, 2 * limits::kSupervisedRestarts);
    hosted_->start_again(now_ms_);
    ASSERT_TRUE(hosted_->is_running());
    now_ms_ += limits::kQuickDeathMs;
  }
  EXPECT_EQ(restarts, limits::kSupervisedRestarts);
}

TEST_F(HostedCoordinatorTest, QuickDeathsWaitLongerAndALongLifeForgivesThem) {
  never_serves();
  start();
  std::vector<int64_t> pauses;
  for (const int64_t lived_ms : {0, 0, 0, 2'000, 0}) {
    now_ms_ += lived_ms;
    pauses.push_back(end_with({-1, SIGKILL}).restart_after_ms.value_or(-1));
    hosted_->start_again(now_ms_);
  }
  EXPECT_THAT(pauses, testing::ElementsAre(0, 250, 500, 0, 0));
}

TEST_F(HostedCoordinatorTest, TheEndOfAnotherProcessIsNoneOfIts) {
  start();
  EXPECT_FALSE(hosted_->ended({::getpid(), {-1, SIGKILL}}, now_ms_).was_ours);
  EXPECT_TRUE(hosted_->is_running());
}

// Before it serves, it has no pulse of its own: the pulse that stands still is its predecessor's.
TEST_F(HostedCoordinatorTest, OneThatDoesNotServeYetIsNotKilled) {
  never_serves();
  start();
  EXPECT_EQ(look_for(2 * kStillMs), std::nullopt);
  hosted_->signal(SIGTERM);
  EXPECT_EQ(reap().end.signal, SIGTERM);
}

TEST_F(HostedCoordinatorTest, OneThatServesAndWhosePulseStandsStillIsKilled) {
  serves();
  start();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!read_coordinator_file(directory_).is_ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "of a test that has failed";
    std::this_thread::yield();
  }
  EXPECT_EQ(look_for(2 * kStillMs), std::nullopt);
  hosted_->signal(SIGTERM);  // which says so if nothing has killed it
  EXPECT_EQ(reap().end.signal, SIGKILL);
}

}  // namespace
}  // namespace lockstep
