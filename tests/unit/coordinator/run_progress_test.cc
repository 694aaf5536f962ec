#include "coordinator/report/run_progress.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep::coordinator {
namespace {

Options options_of(uint32_t global_batch) {
  Options options;
  options.shape = {50, 8, 3};
  options.total_steps = 70;
  options.job.mutable_train()->set_global_batch(global_batch);
  return options;
}

RunStats stats_of(Step steps) {
  RunStats stats;
  for (Step step = 0; step < steps; ++step) {
    StepEntry entry;
    entry.step = step;
    entry.loss = 0.5;
    entry.samples = 10;
    entry.correct = 5;
    entry.wall_us = 1'000'000;
    stats.add(entry);
  }
  return stats;
}

using Named = std::map<std::string, double>;
Named metrics_of(const trainer::RunProgress& progress) {
  return {progress.metrics.begin(), progress.metrics.end()};
}

TEST(RunProgress, CountsStepsThatAreDoneForGood) {
  State state;
  state.run = RunState::kStarted;
  state.completed = 20;
  state.ranks = {1, 2};
  for (const MemberId id : state.ranks) state.members[id].step = 25;  // not in the journal
  state.evals[14] = {.step = 14, .samples = 100, .correct = 80, .loss = 0.25};
  const auto progress = progress_of(state, options_of(10), stats_of(20));
  EXPECT_EQ(progress.step, 20u);
  EXPECT_EQ(progress.total_steps, 70u);
  EXPECT_FALSE(progress.is_ended);
  EXPECT_DOUBLE_EQ(progress.seconds_left.value_or(-1), 50);
  const Named metrics = metrics_of(progress);
  EXPECT_EQ(metrics.at("step"), 20);
  EXPECT_EQ(metrics.at("total_steps"), 70);
  EXPECT_EQ(metrics.at("epoch"), 2);
  EXPECT_EQ(metrics.at("workers"), 2);
  EXPECT_EQ(metrics.at("loss"), 0.5);
  EXPECT_EQ(metrics.at("accuracy"), 0.5);
  EXPECT_EQ(metrics.at("samples_per_second"), 10);
  EXPECT_EQ(metrics.at("eval_loss"), 0.25);
  EXPECT_EQ(metrics.at("eval_accuracy"), 0.8);
}

TEST(RunProgress, WithoutABatchTheNumberOfStepsIsNotKnown) {
  const auto progress = progress_of(State(), options_of(0), RunStats());
  EXPECT_EQ(progress.total_steps, 0u);
  EXPECT_FALSE(progress.seconds_left);
  EXPECT_EQ(metrics_of(progress), (Named{{"step", 0}, {"epoch", 0}, {"workers", 0}}));
}

TEST(RunProgress, BeforeAScriptHasSpokenTheNumberOfStepsIsNotKnown) {
  Options options = options_of(10);
  options.job.mutable_model()->set_name("script");
  EXPECT_EQ(progress_of(State(), options, RunStats()).total_steps, 0u);
  options.script = {{"script.optimizer", "SGD"}};
  EXPECT_EQ(progress_of(State(), options, RunStats()).total_steps, 70u);
}

TEST(RunProgress, IsCompleteWhenItEndedWell) {
  State state;
  state.run = RunState::kEnded;
  state.completed = 70;
  const auto complete = progress_of(state, options_of(10), stats_of(70));
  EXPECT_TRUE(complete.is_complete);
  EXPECT_EQ(complete.seconds_left, 0);
  state.completed = 30;
  state.exit_code = 75;
  const auto stopped = progress_of(state, options_of(10), stats_of(30));
  EXPECT_TRUE(stopped.is_ended);
  EXPECT_FALSE(stopped.is_complete);
  EXPECT_FALSE(stopped.seconds_left) << "nobody trains";
}

}  // namespace
}  // namespace lockstep::coordinator
