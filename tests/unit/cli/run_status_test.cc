#include "deploy/cli/watch/run_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/cli/watch/run_summary.h"

namespace lockstep {
namespace {

TEST(RunStatus, WhatIsAbsentOrOddStaysEmpty) {
  for (const char* text : {"[]", "{}", R"({"step": -1, "loss": "x", "members": 3, "eval": []})",
                           R"({"step": null, "eval": {"step": 1}})"}) {
    const RunStatus status = parse_status(nlohmann::json::parse(text));
    EXPECT_EQ(status.step, 0u) << text;
    EXPECT_FALSE(status.loss) << text;
    EXPECT_FALSE(status.eval) << text;
  }
}

TEST(RunStatus, AnEvaluationMayKnowNoAccuracy) {
  const RunStatus status = parse_status(nlohmann::json::parse(R"({"eval": {"loss": 1.5}})"));
  ASSERT_TRUE(status.eval);
  EXPECT_EQ(status.eval->loss, 1.5);
  EXPECT_FALSE(status.eval->accuracy);
}

TEST(RunStatus, AnAbsentCoordinatorIsAnErrorNotACrash) {
  EXPECT_EQ(ask_status("/nowhere", 100).status().code(), Code::kNoInput);
}

TEST(RunSummary, TheTableShowsWhatThereIs) {
  const auto summary = nlohmann::json::parse(
      R"({"steps": 2345, "epochs": 5, "generations": 1, "eval_accuracy": 0.9071,
          "weights_sha256": "abc", "eval_loss": null})");
  EXPECT_EQ(summary_table(summary, "/runs/x"),
            "  test accuracy   90.71 %\n"
            "  steps           2,345 (5 whole epochs), 1 generation\n"
            "  weights         abc\n"
            "  results         /runs/x\n");
}

TEST(RunSummary, TheBestResultStandsBesideTheLast) {
  const auto summary = nlohmann::json::parse(
      R"({"steps": 2345, "epochs": 5, "generations": 1, "eval_accuracy": 0.9071,
          "best_checkpoint": {"step": 1876, "loss": 0.2571, "accuracy": 0.9082, "name": "s"}})");
  EXPECT_TRUE(has_best(summary));
  EXPECT_THAT(summary_table(summary, "/runs/x"),
              testing::HasSubstr("  best            90.82 %, loss 0.2571, after step 1,876\n"));
  EXPECT_FALSE(has_best(nlohmann::json::parse(R"({"steps": 2345})")));
}

TEST(RunSummary, TheBestOfARunThatKeepsNoneIsNamedWhereItIsNotTheLast) {
  auto summary = nlohmann::json::parse(
      R"({"eval_step": 1876, "best_evaluation": {"step": 680, "loss": 0.4753, "accuracy": 0.8342}})");
  EXPECT_FALSE(has_best(summary));
  EXPECT_THAT(
      summary_table(summary, "/runs/x"),
      testing::HasSubstr("  best            83.42 %, loss 0.4753, after step 680 (not kept: "
                         "checkpoint.best is none)\n"));
  summary.erase("eval_step");  // a file that somebody has edited
  EXPECT_THAT(summary_table(summary, "/runs/x"), testing::HasSubstr("after step 680"));
  summary["eval_step"] = 680;
  EXPECT_THAT(summary_table(summary, "/runs/x"), testing::Not(testing::HasSubstr("  best ")));
}

TEST(RunSummary, ARunWithoutChecksSaysSo) {
  auto summary = nlohmann::json::parse(R"({"checks": {"every": 0, "agreed_step": 0}})");
  EXPECT_THAT(summary_table(summary, "/runs/x"), testing::HasSubstr("  checks          none: "));
  summary["checks"]["every"] = 100;
  EXPECT_THAT(summary_table(summary, "/runs/x"), testing::Not(testing::HasSubstr("checks")));
}

TEST(RunSummary, ALongNameOfAMetricIsWholeAndApartFromItsValue) {
  const auto summary = nlohmann::json::parse(R"({"eval_metrics": {"ema_accuracy": 0.9118}})");
  EXPECT_THAT(summary_table(summary, "/runs/x"),
              testing::HasSubstr("  test ema_accuracy  0.9118\n"));
}

TEST(RunSummary, AnotherEvaluationHasItsOwnName) {
  const auto summary = nlohmann::json::parse(
      R"({"eval_metrics": {"other/loss": 0.5, "other/accuracy": 0.9118, "f1": 0.25}})");
  EXPECT_THAT(summary_table(summary, "/runs/x"),
              testing::AllOf(testing::HasSubstr("\n  other/loss      0.5000\n"),
                             testing::HasSubstr("\n  other/accuracy  91.18 %\n"),
                             testing::HasSubstr("  test f1         0.2500\n")));
}

TEST(RunSummary, ASlowRunHasASpeed) {
  const auto summary = nlohmann::json::parse(R"({"samples_per_second": 0.126})");
  EXPECT_THAT(summary_table(summary, "/runs/x"), testing::HasSubstr(" 0.126 samples/s\n"));
}

}  // namespace
}  // namespace lockstep
