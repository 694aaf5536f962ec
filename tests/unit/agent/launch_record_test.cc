#include "deploy/agent/launch_record.h"

#include <gtest/gtest.h>

#include "comm/base/file.h"
#include "comm/run/directory/layout.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using Verdict = LaunchWait::Verdict;

class LaunchRecordTest : public testing::Test {
 protected:
  std::optional<LaunchRecord> read() const { return read_launch_record(directory_, "a"); }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
};

TEST_F(LaunchRecordTest, WhatRankZeroWritesTheOthersRead) {
  EXPECT_FALSE(read().has_value());
  LaunchRecorder recorder(directory_, "a");
  ASSERT_TRUE(recorder.preparing().is_ok());
  EXPECT_EQ(read(), (LaunchRecord{"a", LaunchState::kPreparing, 0, 0}));
  ASSERT_TRUE(recorder.running().is_ok());
  EXPECT_EQ(read()->state, LaunchState::kRunning);
  ASSERT_TRUE(recorder.ended(75).is_ok());
  EXPECT_EQ(read(), (LaunchRecord{"a", LaunchState::kEnded, 0, 75}));
}

TEST_F(LaunchRecordTest, BeatsAreWrittenOnlySoOften) {
  LaunchRecorder recorder(directory_, "a");
  recorder.still_preparing(100);
  const uint64_t first = read()->beat;
  recorder.still_preparing(100 + kLaunchBeatMs - 1);
  EXPECT_EQ(read()->beat, first);
  recorder.still_preparing(100 + kLaunchBeatMs);
  EXPECT_GT(read()->beat, first);
}

TEST_F(LaunchRecordTest, ARefusalCountsForItsOwnLaunchAndLeavesTheOneThatIsThereAlone) {
  const std::string fresh = directory_ + "/not/there/yet";
  ASSERT_TRUE(write_launch_refusal(fresh, "b", 64).is_ok());
  EXPECT_EQ(read_launch_record(fresh, "b"), (LaunchRecord{"b", LaunchState::kEnded, 0, 64}));
  EXPECT_FALSE(read_launch_record(fresh, "a").has_value());
  LaunchRecorder recorder(directory_, "a");
  ASSERT_TRUE(recorder.running().is_ok());
  ASSERT_TRUE(write_launch_refusal(directory_, "b", 64).is_ok());
  EXPECT_EQ(read()->state, LaunchState::kRunning);
  EXPECT_EQ(read_launch_record(directory_, "b")->exit_code, 64);
}

TEST_F(LaunchRecordTest, WhatIsNoRecordIsNone) {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"launch": "a"})",
                           R"({"launch": 1, "state": "ended", "beat": 0, "exit_code": 0})",
                           R"({"launch": "a", "state": "gone", "beat": 0, "exit_code": 0})",
                           R"({"launch": "a", "state": "ended", "beat": -1, "exit_code": 0})",
                           R"({"launch": "a", "state": "ended", "beat": 0, "exit_code": "0"})"}) {
    ASSERT_TRUE(replace_file(rundir::file_in(directory_, rundir::kLaunch), text).is_ok());
    EXPECT_FALSE(read().has_value()) << text;
  }
}

TEST(LaunchWait, OnlyTheRecordOfItsOwnLaunchCounts) {
  LaunchWait wait("b", 0);
  EXPECT_EQ(wait.see(std::nullopt, 1), Verdict::kWait);
  EXPECT_EQ(wait.see(LaunchRecord{"a", LaunchState::kRunning, 0, 0}, 2), Verdict::kWait);
  EXPECT_EQ(wait.see(LaunchRecord{"a", LaunchState::kEnded, 0, 70}, 3), Verdict::kWait);
  EXPECT_EQ(wait.see(LaunchRecord{"b", LaunchState::kPreparing, 0, 0}, 4), Verdict::kWait);
  EXPECT_EQ(wait.see(LaunchRecord{"b", LaunchState::kRunning, 0, 0}, 5), Verdict::kJoin);
}

TEST(LaunchWait, AnEndBeforeTheRunBeganHasItsCode) {
  LaunchWait wait("a", 0);
  EXPECT_EQ(wait.see(LaunchRecord{"a", LaunchState::kEnded, 3, 65}, 1), Verdict::kEnded);
  EXPECT_EQ(wait.record()->exit_code, 65);
}

TEST(LaunchWait, WhereRankZeroIsMadeAgainAStopIsWaitedOutAndAnyOtherEndIsOne) {
  LaunchWait wait("a", 0, /*begins_again=*/true);
  EXPECT_EQ(wait.see(LaunchRecord{"a", LaunchState::kEnded, 3, 75}, 1), Verdict::kWait);
  EXPECT_EQ(wait.see(LaunchRecord{"a", LaunchState::kPreparing, 0, 0}, 2), Verdict::kWait);
  EXPECT_EQ(wait.see(LaunchRecord{"a", LaunchState::kRunning, 0, 0}, 3), Verdict::kJoin);
  for (const int code : {0, 65, 70}) {
    LaunchWait other("a", 0, /*begins_again=*/true);
    EXPECT_EQ(other.see(LaunchRecord{"a", LaunchState::kEnded, 3, code}, 1), Verdict::kEnded);
  }
}

TEST(LaunchWait, RankZeroIsGivenUpWhenItIsSilentAndNotWhileItIsAtWork) {
  LaunchWait wait("a", 0);
  EXPECT_EQ(wait.see(std::nullopt, kLaunchSilenceMs), Verdict::kWait);
  const LaunchRecord preparing{"a", LaunchState::kPreparing, 1, 0};
  int64_t now_ms = kLaunchSilenceMs;
  LaunchRecord beat = preparing;
  for (; beat.beat < 9; ++beat.beat, now_ms += kLaunchSilenceMs)
    ASSERT_EQ(wait.see(beat, now_ms), Verdict::kWait) << beat.beat;
  --beat.beat;
  EXPECT_EQ(wait.see(beat, now_ms), Verdict::kWait);
  EXPECT_EQ(wait.see(LaunchRecord{"other", LaunchState::kPreparing, 1, 0}, now_ms + 1),
            Verdict::kGiveUp)
      << "another launch's record is no sign of life";
}

TEST(LaunchWait, AUserHearsOnceForWhatARankWaits) {
  LaunchWait wait("a", 1'000);
  EXPECT_FALSE(wait.should_say(1'000 + kLaunchSayMs - 1));
  EXPECT_TRUE(wait.should_say(1'000 + kLaunchSayMs));
  EXPECT_FALSE(wait.should_say(1'000 + 2 * kLaunchSayMs));
}

// 1,000 ranks that look every 100 ms open 20,000 files a second.
TEST(LaunchWaits, ARankThatWaitsLooksEverLess) {
  Prng jitter(7);
  Prng other(8);
  int64_t waited_ms = 0;
  uint32_t looks = 0;
  int differ = 0;
  for (; waited_ms < 60'000; ++looks) {
    const int64_t pause_ms = look_pause_ms(looks, jitter);
    EXPECT_GE(pause_ms, kLaunchPollMs);
    EXPECT_LE(pause_ms, kLaunchPollMostMs);
    differ += pause_ms != look_pause_ms(looks, other);
    if (looks < 10) {
      EXPECT_EQ(pause_ms, kLaunchPollMs) << "a quick launch is joined at once";
    }
    waited_ms += pause_ms;
  }
  EXPECT_LT(looks, 60u);
  EXPECT_GT(differ, 20) << "ranks that began together do not look together";
}

}  // namespace
}  // namespace lockstep
