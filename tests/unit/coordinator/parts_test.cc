// Ledger, identity, history and statistics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "comm/run/directory/run_lock.h"
#include "coordinator/journal/history.h"
#include "coordinator/report/run_stats.h"
#include "coordinator/state/identity.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

TEST(Ledger, ACutShortensTheRowThatHoldsItAndRollsLaterOnesBack) {
  const std::vector<LedgerRow> rows{
      {1, {0, Phase::kTrain}, ResumePoint{100, Phase::kTrain}, false, "start"},
      {2, {100, Phase::kTrain}, ResumePoint{200, Phase::kTrain}, false, "resume"},
      {3, {200, Phase::kTrain}, std::nullopt, false, "resume"}};
  const auto changed = cut_ledger(rows, {150, Phase::kTrain});
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].last->step, 150u);
  EXPECT_TRUE(changed[1].rolled_back);
  EXPECT_FALSE(changed[1].covers(200));
  EXPECT_TRUE(changed[0].covers(149));
  EXPECT_FALSE(changed[0].covers(150));
}

TEST(Identity, ADifferenceNamesTheKeyAndBothValues) {
  const Options o = small_options();
  wire::JobSpec job = o.job;
  job.mutable_train()->set_max_steps(99);  // free
  job.mutable_optimizer()->set_lr(0.5);    // free
  job.mutable_cluster()->set_workers(7);   // free
  EXPECT_TRUE(check_identity(o.identity, identity_of(job, o.facts)).is_ok());
  job.set_seed(5);
  job.mutable_model()->set_dropout(0.25);
  const auto differences = identity_diff(o.identity, identity_of(job, o.facts));
  EXPECT_EQ(differences,
            (std::vector<IdentityDifference>{{"seed", "0", "5"}, {"model.dropout", "0", "0.25"}}));
  EXPECT_EQ(check_identity(o.identity, identity_of(job, o.facts)).code(), Code::kUsage);
}

TEST(Identity, SlotsComeFromTheJobElseFromTheRunElseFromTheWorkers) {
  wire::JobSpec job;
  job.mutable_cluster()->set_workers(3);
  EXPECT_EQ(resolve_slots(job, {}), 3u);
  EXPECT_EQ(resolve_slots(job, {{"train.slots", "8"}}), 8u);
  job.mutable_train()->set_slots(2);
  EXPECT_EQ(resolve_slots(job, {{"train.slots", "8"}}), 2u);  // and is refused as a difference
}

StepEntry at(Step step) {
  StepEntry entry;
  entry.generation = 1;
  entry.step = step;
  entry.loss = 1.0 / 3.0;
  entry.lr = 0.001;
  entry.samples = 128;
  return entry;
}

TEST(History, LinesCarryNineDigitsAndCountFromOne) {
  EXPECT_EQ(history_line(at(0)),
            "{\"step\":1,\"epoch\":0,\"loss\":0.333333333,\"lr\":0.001,\"samples\":128}\n");
  StepEntry skipped = at(1);
  skipped.skipped = true;
  EXPECT_EQ(history_line(skipped),
            "{\"step\":2,\"epoch\":0,\"loss\":0.333333333,\"lr\":0.001,\"samples\":128,"
            "\"skipped\":true}\n");
}

TEST(History, AResumeCutsWhatWasRolledBackAndHalfALine) {
  const TemporaryDirectory dir;
  const std::string path = dir.path() + "/history.jsonl";
  {
    auto history = History::open(path, 0);
    for (Step step = 0; step < 5; ++step) (*history)->append(at(step));
    ASSERT_TRUE((*history)->flush().is_ok());
    std::ofstream(path, std::ios::app) << "{\"step\":6,\"epo";
  }
  {
    auto all = History::open(path, 100);
    EXPECT_EQ((*all)->lines(), 5u);
  }
  auto history = History::open(path, 3);
  ASSERT_EQ((*history)->lines(), 3u);
  (*history)->append(at(3));
  ASSERT_TRUE((*history)->flush().is_ok());
  EXPECT_EQ(slurp(path),
            history_line(at(0)) + history_line(at(1)) + history_line(at(2)) + history_line(at(3)));
  ASSERT_TRUE((*history)->cut(1).is_ok());
  (*history)->append(at(1));
  ASSERT_TRUE((*history)->flush().is_ok());
  EXPECT_EQ(slurp(path), history_line(at(0)) + history_line(at(1)));
}

TEST(History, AChangedLineIsWrittenAnewWithAllThatFollow) {
  const TemporaryDirectory dir;
  const std::string path = dir.path() + "/history.jsonl";
  constexpr Step kSteps = 5;
  auto history = History::open(path, 0);
  for (Step step = 0; step < kSteps; ++step) (*history)->append(at(step));
  ASSERT_TRUE((*history)->flush().is_ok());
  const std::string whole = slurp(path);
  const History::Steps steps = [](Step from, Step to, const auto& visit) {
    for (Step step = from; step < to; ++step) visit(at(step));
    return Status::ok();
  };
  EXPECT_FALSE(*(*history)->correct(kSteps, steps));
  std::string changed = whole;
  changed[whole.find("0.001", 2 * whole.size() / kSteps) + 2] = '7';  // as large, and whole JSON
  std::ofstream(path) << changed;
  ASSERT_TRUE((*history)->is_whole()) << "its size says nothing";
  EXPECT_TRUE(*(*history)->correct(kSteps, steps));
  EXPECT_EQ(slurp(path), whole);
  ASSERT_TRUE((*history)->cut(2).is_ok());
  EXPECT_TRUE(*(*history)->correct(kSteps, steps));
  EXPECT_EQ(slurp(path), whole);
}

TEST(RunDirectory, ASecondCoordinatorIsRefusedWithThePidOfTheFirst) {
  const TemporaryDirectory dir;
  const auto first = RunLock::take(dir.path() + "/journal.db");
  ASSERT_TRUE(first.is_ok());
  const auto second = RunLock::take(dir.path() + "/journal.db");
  EXPECT_THAT(second, FailsWith(Code::kUsage, Names(std::to_string(::getpid()))));
}

TEST(RunStats, TheSteadyStateLeavesTheFirstStepsOut) {
  RunStats stats;
  StepEntry step;
  step.samples = 100;
  step.correct = 50;
  step.wall_us = 1'000'000;
  for (int i = 0; i < 10; ++i) stats.add(step);
  EXPECT_DOUBLE_EQ(stats.steady_samples_per_second(), 100);
  step.wall_us = 100'000;
  for (int i = 0; i < 10; ++i) stats.add(step);
  EXPECT_DOUBLE_EQ(stats.steady_samples_per_second(), 1000);
  EXPECT_DOUBLE_EQ(stats.correct_per_sample().value_or(-1), 0.5);
  EXPECT_NEAR(stats.useful_seconds(), 11, 1e-9);
}

TEST(RunStats, WhereProcessesStoodStillIsNoUsefulTime) {
  RunStats stats;
  StepEntry step;
  step.wall_us = 100'000;
  for (int i = 0; i < 20; ++i) stats.add(step);
  EXPECT_NEAR(stats.useful_seconds(), 2, 1e-9);
  step.wall_us = 12'000'000;  // all were stopped for 12 s
  stats.add(step);
  EXPECT_NEAR(stats.useful_seconds(), 2.1, 1e-9);
  step.wall_us = 900'000;  // one that is long by nature
  stats.add(step);
  EXPECT_NEAR(stats.useful_seconds(), 3, 1e-9);
}

}  // namespace
}  // namespace lockstep::coordinator
