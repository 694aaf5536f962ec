#include "deploy/cli/watch/live_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "deploy/cli/base/text.h"
#include "deploy/cli/watch/run_reporter.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::Not;

RunStatus training() {
  RunStatus status;
  status.state = "started";
  status.step = 734;
  status.total_steps = 2345;
  status.epoch = 1;
  status.epochs = 5;
  status.generation = 1;
  status.members = 2;
  status.workers = 2;
  status.global_batch = 128;
  status.loss = 0.31239;
  status.last_loss = 0.29871;
  status.accuracy = 0.8891;
  status.samples_per_second = 12'345.6;
  return status;
}

TEST(LiveLine, AWideTerminalShowsEverything) {
  EXPECT_EQ(live_line(training(), {200, true}),
            "epoch 2/5  ━━━┄┄┄┄┄┄┄┄┄  step 734/2,345  loss 0.2987  mean 0.3124  acc 88.9 %  "
            "12,346 samples/s  2 workers  gen 1  0:17 left");
}

TEST(LiveLine, ItIsShorterThanAnyTerminal) {
  for (size_t width = 1; width <= 160; ++width)
    for (bool unicode : {true, false})
      EXPECT_LT(columns(live_line(training(), {width, unicode})), width);
}

TEST(LiveLine, WhatMattersMostStaysWhenItGetsTight) {
  const std::string line = live_line(training(), {60, true});
  EXPECT_THAT(line, HasSubstr("step 734/2,345"));
  EXPECT_THAT(line, HasSubstr("loss 0.2987"));
  EXPECT_THAT(line, Not(HasSubstr("gen 1")));
}

TEST(LiveLine, WorkersThatAreMissingAreCounted) {
  RunStatus status = training();
  status.state = "gathering";
  status.members = 1;
  EXPECT_EQ(live_line(status, {80, true}), "waiting for workers: 1 of 2");
}

TEST(LiveLine, TheBatchThatWasFoundIsToldWithItsSteps) {
  RunStatus status = training();
  status.global_batch = 512;
  status.slots = 8;
  status.steps_per_epoch = 117;
  EXPECT_THAT(batch_line(status), testing::AllOf(HasSubstr("512"), HasSubstr("8 slots of 64"),
                                                 HasSubstr("117 steps"), Not(HasSubstr("slots;"))));
  status.steps_per_epoch = 7;
  EXPECT_THAT(batch_line(status), testing::AllOf(HasSubstr("7 steps"), HasSubstr("train.slots")));
}

TEST(LiveLine, OfTokensItShowsPerplexityAndNoAccuracy) {
  RunStatus status = training();
  status.of_tokens = true;
  status.loss = 3;
  status.eval = EvalResult{700, 0, 0.4, 2, true};
  status.lr = 4e-9;
  EXPECT_THAT(live_line(status, {200, true}), HasSubstr("ppl 20.09"));
  EXPECT_THAT(live_line(status, {200, true}), Not(HasSubstr("acc")));
  EXPECT_EQ(figures_line(status), "lr 4e-09, test loss 2.0000, perplexity 7.39 (step 700)");
  EXPECT_THAT(eval_line(*status.eval, 5, 469), Not(HasSubstr("accuracy")));
}

TEST(LiveLine, ASlowRunHasASpeedToo) {
  RunStatus status = training();
  status.samples_per_second = 0.126;
  EXPECT_THAT(live_line(status, {200, true}), HasSubstr("  0.126 samples/s"));
}

// The line of a run that evaluates more often than it is asked.
TEST(LiveLine, EvaluationsThatAreNotShownAreCounted) {
  std::FILE* out = std::tmpfile();
  Reporter reporter({out, false, false});
  RunStatus status = training();
  const auto evaluated = [&](uint64_t count) {
    status.evaluations = count;
    status.eval = EvalResult{100 * count, 0, 0.5, 2};
    reporter.status(status, 0);
  };
  evaluated(1), evaluated(2), evaluated(5);
  std::string text(10'000, ' ');
  std::rewind(out);
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  EXPECT_THAT(text, HasSubstr("accuracy 50.00 %, loss 2.0000 (2 evaluations before it"));
  EXPECT_THAT(text, Not(HasSubstr("(0 eval")));
  EXPECT_THAT(text, Not(HasSubstr("(1 eval")));
}

TEST(LiveLine, UnknownThingsAreLeftOut) {
  RunStatus status;
  status.state = "started";
  EXPECT_EQ(live_line(status, {80, true}), "epoch 1  step 0  0 workers  gen 0");
  EXPECT_LT(seconds_left(status), 0);
}

TEST(LiveLine, TheLastEpochIsNeverCountedPast) {
  RunStatus status = training();
  status.epoch = 5;
  EXPECT_THAT(plain_line(status), HasSubstr("epoch 5/5,"));
}

TEST(LiveLine, AnEvaluationIsOneLine) {
  EXPECT_EQ(eval_line({469, 0, 0.87123, 0.35119}, 5, 469),
            "epoch 1/5: test accuracy 87.12 %, loss 0.3512");
  EXPECT_EQ(eval_line({300, 0, 0.87123, 0.35119, false, 0.99}, 5, 469),
            "epoch 1/5, step 300: test accuracy 87.12 %, top 5 99.00 %, loss 0.3512");
}

TEST(Text, NumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(rate_text(2845.4), "2,845");
  EXPECT_EQ(rate_text(99.96), "100");
  EXPECT_EQ(rate_text(12.64), "12.6");
  EXPECT_EQ(rate_text(5), "5");
  EXPECT_EQ(rate_text(0.126), "0.126");
  EXPECT_EQ(rate_text(0.00042), "0.00042");
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(duration_text(42.4), "0:42");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(3600.0 * 76), "3 d 4 h");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(bytes_text(26'421'856), "26.4 MB");
  EXPECT_EQ(plural(1, "worker"), "1 worker");
  EXPECT_EQ(columns("━━a"), 3u);
}

}  // namespace
}  // namespace lockstep
