// Tests when reports go, in virtual time, and what the log says.
#include "coordinator/trainer_status/status_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "comm/rpc/memory_transport.h"
#include "tests/unit/rpc/test_support.h"

namespace lockstep::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StillClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return 0; }
  int64_t wall_ms() const override { return 0; }
};

class TrainerReporter : public testing::Test {
 protected:
  struct Sent {
    int64_t at_ms = 0;
    int64_t timeout_ms = 0;
    int percent = 0;
  };

  void SetUp() override {
    progress_ = RunProgress{.step = 0, .total_steps = 100};
    reporter_.start();
  }

  void step(uint64_t to) { progress_->step = to; }
  void end() {
    progress_->is_ended = true;
    progress_->is_complete = progress_->step == progress_->total_steps;
  }
  void answer(const Status& status) {
    loop_.post([done = std::exchange(done_, nullptr), status] { done(status); });
    loop_.run_for(1);
  }
  // Runs, with a step every second and an outcome for every report.
  void train_for(int64_t seconds, const Status& outcome) {
    for (int64_t i = 0; i < seconds; ++i) {
      ++progress_->step;
      loop_.run_for(1'000);
      if (done_) answer(outcome);
    }
  }
  void finish() {
    reporter_.finish([this] { finished_ms_ = loop_.now_ms(); });
  }
  std::vector<int> percents() const {
    std::vector<int> all;
    for (const Sent& sent : sent_) all.push_back(sent.percent);
    return all;
  }

  rpc::SimLoop loop_;
  rpc::MemoryLogger logger_;
  StillClock clock_;
  std::optional<RunProgress> progress_;
  std::vector<Sent> sent_;
  StatusReporter::Done done_;  // of the report under way
  std::optional<int64_t> finished_ms_;
  StatusReporter reporter_{
      {loop_, logger_, clock_, [this] { return progress_; },
       [this](const std::string& body, int64_t timeout_ms, StatusReporter::Done done) {
         ASSERT_FALSE(done_) << "one is under way";
         const auto status = nlohmann::json::parse(body)["trainerStatus"];
         sent_.push_back({loop_.now_ms(), timeout_ms, status["progressPercentage"]});
         done_ = std::move(done);
       }}};
  const Status refused_{Code::kRefused, "server answers 500 (no): look"};
};

TEST_F(TrainerReporter, ReportsEveryFiveSecondsWhatIsNew) {
  train_for(21, Status::ok());
  ASSERT_GE(sent_.size(), 4u);
  EXPECT_LE(sent_.size(), 5u);
  for (size_t i = 1; i < sent_.size(); ++i) {
    EXPECT_GE(sent_[i].at_ms - sent_[i - 1].at_ms, kEveryMs);
    EXPECT_GT(sent_[i].percent, sent_[i - 1].percent);
  }
  const size_t before = sent_.size();
  loop_.run_for(kEveryMs);
  if (done_) answer(Status::ok());
  loop_.run_for(60'000);
  EXPECT_LE(sent_.size(), before + 1) << "nothing is new";
  EXPECT_TRUE(logger_.lines.now().empty());
}

TEST_F(TrainerReporter, WaitsForTheOneUnderWay) {
  loop_.run_for(1'000);
  for (int i = 1; i <= 30; ++i) {
    step(i);
    loop_.run_for(1'000);
  }
  EXPECT_THAT(percents(), ElementsAre(0));
  answer(Status::ok());
  loop_.run_for(1'000);
  EXPECT_THAT(percents(), ElementsAre(0, 30));
  EXPECT_EQ(sent_[1].timeout_ms, kTimeoutMs);
}

TEST_F(TrainerReporter, SaysNothingWhileThereIsNothingToSay) {
  progress_.reset();
  loop_.run_for(60'000);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(TrainerReporter, FailuresAreOneLineInTenMinutesAndOneWhenTheyEnd) {
  train_for(60, refused_);
  ASSERT_EQ(logger_.lines.now().size(), 1u);
  EXPECT_THAT(logger_.lines.now()[0], HasSubstr(refused_.message()));
  EXPECT_GE(sent_.size(), 10u) << "it is tried again";
  train_for(kRepeatMs / 1'000, refused_);
  EXPECT_EQ(logger_.lines.now().size(), 2u);
  train_for(10, Status::ok());
  ASSERT_EQ(logger_.lines.now().size(), 3u);
  EXPECT_THAT(logger_.lines.now()[2], HasSubstr("again"));
  for (int i = 0; i < 5; ++i) {  // a server that comes and goes
    train_for(6, refused_);
    train_for(6, Status::ok());
  }
  EXPECT_EQ(logger_.lines.now().size(), 3u);
}

TEST_F(TrainerReporter, TheEndIsToldAtOnce) {
  loop_.run_for(kLookMs);
  answer(Status::ok());
  step(100);
  end();
  loop_.run_for(kLookMs);
  EXPECT_THAT(percents(), ElementsAre(0, 100));
  EXPECT_LT(sent_[1].at_ms, kEveryMs);
  answer(Status::ok());
  finish();
  EXPECT_TRUE(finished_ms_) << "all is told";
  loop_.run_for(60'000);
  EXPECT_EQ(sent_.size(), 2u);
}

TEST_F(TrainerReporter, FinishWaitsForTheLastReport) {
  loop_.run_for(kLookMs);
  step(100);
  end();
  finish();
  EXPECT_FALSE(finished_ms_) << "one from before the end is under way";
  answer(Status::ok());
  EXPECT_THAT(percents(), ElementsAre(0, 100));
  EXPECT_FALSE(finished_ms_);
  answer(Status::ok());
  EXPECT_TRUE(finished_ms_);
}

TEST_F(TrainerReporter, FinishDoesNotWaitForAServerThatHangs) {
  loop_.run_for(kLookMs);
  answer(Status::ok());
  step(50);
  end();
  const int64_t began_ms = loop_.now_ms();
  finish();
  EXPECT_EQ(sent_.back().percent, 50);
  EXPECT_LE(sent_.back().timeout_ms, kFinishMs);
  loop_.run_for(60'000);
  EXPECT_EQ(finished_ms_, began_ms + kFinishMs);
  answer(refused_);
  EXPECT_EQ(sent_.size(), 2u) << "nothing is told afterwards";
}

TEST_F(TrainerReporter, FinishTriesAFailedEndOnce) {
  end();
  loop_.run_for(kLookMs);
  answer(refused_);
  loop_.run_for(1'000);
  EXPECT_EQ(sent_.size(), 1u) << "not over and over";
  finish();
  answer(refused_);
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_TRUE(finished_ms_);
}

TEST_F(TrainerReporter, WhoeverLostTheRunTellsNothingAtTheEnd) {
  loop_.run_for(kLookMs);
  answer(Status::ok());
  progress_.reset();
  finish();
  EXPECT_TRUE(finished_ms_);
  EXPECT_EQ(sent_.size(), 1u);
}

}  // namespace
}  // namespace lockstep::trainer
