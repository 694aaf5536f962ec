// Scores as text, JSON, table and picture.
#include "worker/inference/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "comm/base/text/utf8.h"

namespace lockstep {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Of 10 cats 8 are right, of 5 dogs 5, and there is no <cow>.
Scores three_classes() {
  Scores scores;
  scores.samples = scores.labels = 15;
  scores.sums.loss = 7.5;
  scores.correct = 13;
  scores.confusion = {8, 2, 0, 0, 5, 0, 0, 0, 0};
  scores.class_names = {"cat", "dog", "<cow>"};
  return scores;
}

TEST(Scores, TextSaysRecallAndPrecisionByClass) {
  const std::string text = scores_text(three_classes());
  EXPECT_THAT(text, ContainsRegex("loss +0.500000"));
  EXPECT_THAT(text, ContainsRegex("accuracy +86.67 % \\(13 of 15\\)"));
  EXPECT_THAT(text, ContainsRegex("cat +10 +80.00 % +100.00 %"));
  EXPECT_THAT(text, ContainsRegex("dog +5 +100.00 % +71.43 %"));
  EXPECT_THAT(text, ContainsRegex("<cow> +0 +- +-"));
  EXPECT_THAT(text, ContainsRegex("0 cat +8 +2 +0"));
  EXPECT_THAT(text, Not(HasSubstr("perplexity")));
  EXPECT_THAT(text, Not(HasSubstr("top 5")));
}

TEST(Scores, TokensHaveAPerplexity) {
  Scores scores;
  scores.samples = 2;
  scores.labels = 20;
  scores.sums.loss = 20 * std::log(3.0);
  scores.is_of_tokens = true;
  EXPECT_THAT(scores_text(scores), ContainsRegex("perplexity +3.0000"));
  EXPECT_NEAR(scores_json(scores)["perplexity"].get<double>(), 3, 1e-12);
  EXPECT_FALSE(scores_json(scores).contains("confusion"));
}

TEST(Scores, NumbersHaveErrorsAndNoAccuracy) {
  Scores scores;
  scores.samples = scores.labels = 4;
  scores.sums = {.loss = 2, .weight = 0, .squared = 36, .absolute = 10, .metrics = {}};
  scores.has_accuracy = false;
  scores.has_errors = true;
  const std::string text = scores_text(scores);
  EXPECT_THAT(text, ContainsRegex("loss +0.500000"));
  EXPECT_THAT(text, ContainsRegex("RMSE +3.000000"));
  EXPECT_THAT(text, ContainsRegex("MAE +2.500000"));
  EXPECT_THAT(text, Not(HasSubstr("accuracy")));
  const auto json = scores_json(scores);
  EXPECT_EQ(json["rmse"], 3);
  EXPECT_EQ(json["mae"], 2.5);
  EXPECT_FALSE(json.contains("accuracy"));
}

TEST(Scores, ALossOfItsOwnHasWeightsAndMetrics) {
  Scores scores;
  scores.samples = scores.labels = 4;
  scores.sums = {.loss = 3, .weight = 2, .squared = 0, .absolute = 0, .metrics = {1, 2}};
  scores.has_accuracy = false;
  scores.has_weights = true;
  scores.metric_names = {"hit", "a_rather_long_name"};
  EXPECT_EQ(scores.loss(), 1.5);
  const std::string text = scores_text(scores);
  EXPECT_THAT(text, HasSubstr("hit        0.250000\na_rather_long_name 0.500000\n"));
  EXPECT_EQ(scores_json(scores)["metrics"]["a_rather_long_name"], 0.5);
  EXPECT_FALSE(scores_json(scores).contains("rmse"));
}

TEST(Scores, JsonHasTheMatrix) {
  const auto json = scores_json(three_classes());
  EXPECT_EQ(json["loss"], 0.5);
  EXPECT_EQ(json["classes"][1]["predicted"], 7);
  EXPECT_EQ(json["confusion"][0], (std::vector<uint64_t>{8, 2, 0}));
}

TEST(Scores, LongNamesAreCutBetweenCharacters) {
  Scores scores = three_classes();
  scores.class_names[0] = "x";
  for (int i = 0; i < 30; ++i) scores.class_names[0] += "日";
  scores.class_names[1] = "bell\a";
  const std::string picture = confusion_svg(scores);
  const std::string text = scores_text(scores);
  EXPECT_TRUE(is_utf8(picture));
  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(picture.find('\a'), std::string::npos);
  EXPECT_EQ(text.find('\a'), std::string::npos);
  EXPECT_THAT(picture, HasSubstr(">x日日"));
}

TEST(Scores, TableAndPictureNameTheClasses) {
  const Scores scores = three_classes();
  EXPECT_EQ(confusion_csv(scores),
            "label,\"cat\",\"dog\",\"<cow>\"\n\"cat\",8,2,0\n\"dog\",0,5,0\n\"<cow>\",0,0,0\n");
  const std::string picture = confusion_svg(scores);
  EXPECT_THAT(picture, HasSubstr("&lt;cow&gt;"));
  EXPECT_THAT(picture, Not(HasSubstr("<cow>")));
  EXPECT_THAT(picture, HasSubstr("fill=\"rgb(95,95,255)\""));    // 8 of 10
  EXPECT_THAT(picture, HasSubstr("fill=\"rgb(255,215,215)\""));  // 2 of 10
}

TEST(Scores, ANameNeitherBreaksATableNorCalculatesInASpreadsheet) {
  Scores scores = three_classes();
  scores.class_names = {"=1+cmd|' /C calc'!A0", "a\nlockstep: done\x1b[2J", "-1"};
  const std::string table = confusion_csv(scores);
  EXPECT_THAT(table, HasSubstr("\"'=1+cmd|"));
  EXPECT_THAT(table, HasSubstr("\"a\\nlockstep: done\\x1b[2J\""));
  EXPECT_THAT(table, HasSubstr("\"-1\"")) << "a number is a number";
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_THAT(scores_text(scores), Not(HasSubstr("\nlockstep")));
}

}  // namespace
}  // namespace lockstep
