#include "comm/run/evaluation/evaluation_due.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::data {
namespace {

std::vector<Step> due_steps(const Evaluations& when, Step end) {
  std::vector<Step> steps;
  for (Step step = 0; step <= end; ++step)
    if (evaluation_due(when, step, end)) steps.push_back(step);
  return steps;
}

TEST(Evaluations, AreDueAtTheEndOfEveryEpochAndOfTheRun) {
  EXPECT_EQ(due_steps({true, 4, 0}, 10), (std::vector<Step>{4, 8, 10}));
  EXPECT_EQ(due_steps({true, 20, 0}, 10), (std::vector<Step>{10}));
}

TEST(Evaluations, AreAlsoDueEverySoManyStepsOfTheRun) {
  EXPECT_EQ(due_steps({true, 4, 3}, 10), (std::vector<Step>{3, 4, 6, 8, 9, 10}));
  EXPECT_EQ(due_steps({true, 20, 1}, 3), (std::vector<Step>{1, 2, 3}));
}

TEST(Evaluations, AreDueBetweenBatchesOnly) {
  EXPECT_EQ(due_steps({true, 8, 3, 2}, 20), (std::vector<Step>{4, 6, 8, 10, 12, 16, 18, 20}));
}

TEST(Evaluations, AreNeverDueWithoutData) {
  EXPECT_TRUE(due_steps({false, 4, 3}, 10).empty());
}

TEST(Evaluations, InitialWeightsAreNotEvaluated) {
  EXPECT_FALSE(evaluation_due({true, 4, 1}, 0, 0));
}

}  // namespace
}  // namespace lockstep::data
