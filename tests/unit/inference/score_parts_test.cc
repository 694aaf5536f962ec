// Scores of parts: through text and back, and joined.
#include "worker/inference/score_parts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

ScoreSums sums(double loss, double metric = 0) {
  return {.loss = loss, .weight = 2, .squared = loss / 3, .absolute = 0.1, .metrics = {metric}};
}

PartScores part_with(std::vector<ScoreSums> batches) {
  PartScores part;
  part.scores.samples = part.scores.labels = 40;
  part.scores.correct = 3;
  part.scores.top5 = 4;
  part.scores.has_top5 = true;
  part.scores.has_weights = true;
  part.scores.metric_names = {"hit"};
  part.scores.class_names = {"a", "b \xff"};
  part.scores.confusion = {0, 7, 1, 0};
  part.batches = std::move(batches);
  return part;
}

TEST(ScoreParts, TextKeepsEveryBit) {
  const double odd = std::nextafter(0.1, 1);
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto read = parse_part(part_text(part_with({sums(odd, none), sums(-0.0, 1e300)})));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  ASSERT_EQ(read->batches.size(), 2u);
  EXPECT_EQ(read->batches[0].loss, odd);
  EXPECT_TRUE(std::isnan(read->batches[0].metrics[0]));
  EXPECT_TRUE(std::signbit(read->batches[1].loss));
  EXPECT_EQ(read->batches[1].metrics[0], 1e300);
  EXPECT_EQ(read->scores.confusion, (std::vector<uint64_t>{0, 7, 1, 0}));
  EXPECT_EQ(read->scores.class_names[0], "a");
  EXPECT_TRUE(read->scores.has_weights);
  EXPECT_TRUE(read->scores.has_accuracy);
  EXPECT_FALSE(read->scores.has_errors);
}

TEST(ScoreParts, AreAddedBatchByBatchInTheirOrder) {
  // The sums depend on their order: 1e16 swallows 1, but not 1 + 1.
  const std::vector<ScoreSums> batches = {sums(1e16, 1), sums(1, 2), sums(1, 3), sums(-1e16, 4)};
  const Scores whole = joined({part_with(batches)});
  EXPECT_EQ(whole.sums.loss, ((1e16 + 1) + 1) - 1e16);
  EXPECT_EQ(whole.sums.metrics[0], 10);
  EXPECT_EQ(whole.sums.weight, 8);
  const Scores parts = joined({part_with({batches[0]}), part_with({}),
                               part_with({batches[1], batches[2]}), part_with({batches[3]})});
  EXPECT_EQ(std::bit_cast<uint64_t>(parts.sums.loss), std::bit_cast<uint64_t>(whole.sums.loss));
  EXPECT_EQ(parts.sums.squared, whole.sums.squared);
  EXPECT_EQ(parts.correct, 12u);
  EXPECT_EQ(parts.top5, 16u);
  EXPECT_EQ(parts.samples, 40u);
  EXPECT_EQ(parts.of(0, 1), 28u);
}

TEST(ScoreParts, WhatIsNoPartIsAnError) {
  for (const char* text : {"", "{}", "[1, 2]", R"({"samples": "many"})"})
    EXPECT_THAT(parse_part(text), FailsWith(Code::kInternal, Says("cannot be read"))) << text;
}

}  // namespace
}  // namespace lockstep
