// Predictions as text and as an array.
#include "worker/inference/prediction_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

const std::vector<float> kThree = {std::log(0.25F), std::log(0.5F), std::log(0.25F)};

PredictionRows rows_of(PredictionFormat format, uint32_t classes, uint32_t top,
                       std::vector<std::string> names) {
  PredictionContent content;
  content.shape = {classes};
  content.classes = classes;
  content.top = top;
  content.class_names = std::move(names);
  return {format, std::move(content)};
}

PredictionRows rows_of(PredictionFormat format, PredictionKind kind, std::vector<int64_t> shape) {
  PredictionContent content;
  content.kind = kind;
  content.shape = std::move(shape);
  return {format, std::move(content)};
}

template <typename T>
std::vector<T> values_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(PredictionRows, CsvHasTheLikeliestFirstAndTheLowerOnATie) {
  const PredictionRows rows = rows_of(PredictionFormat::kCsv, 3, 3, {"a,b", "c", "d \"e\""});
  std::string text = rows.header(1);
  rows.add(7, "x.png", kThree, &text);
  EXPECT_EQ(text,
            "sample,name,class_1,probability_1,class_2,probability_2,class_3,probability_3\n"
            "7,x.png,c,0.5,\"a,b\",0.25,\"d \"\"e\"\"\",0.25\n");
}

TEST(PredictionRows, WithoutNamesAClassIsItsNumber) {
  const PredictionRows rows = rows_of(PredictionFormat::kCsv, 3, 1, {});
  std::string text;
  rows.add(0, "x", kThree, &text);
  EXPECT_EQ(text, "0,x,1,0.5\n");
}

TEST(PredictionRows, NamesInCsvAreTextOfOneLine) {
  const PredictionRows rows = rows_of(PredictionFormat::kCsv, 3, 1, {"x", "@SUM(A1)", "+2"});
  std::string text;
  rows.add(0, "=HYPERLINK(1).png", kThree, &text);
  rows.add(1, "-photo\n9,x.png", kThree, &text);
  rows.add(2, "\x1b[2J.png", kThree, &text);
  EXPECT_EQ(text,
            "0,'=HYPERLINK(1).png,'@SUM(A1),0.5\n"
            "1,\"'-photo\\n9,x.png\",'@SUM(A1),0.5\n"
            "2,\\x1b[2J.png,'@SUM(A1),0.5\n");
}

TEST(PredictionRows, JsonlHasALineASample) {
  const PredictionRows rows = rows_of(PredictionFormat::kJsonl, 3, 2, {"a", "b", "c"});
  std::string text = rows.header(1);
  rows.add(3, "bad \xff name", kThree, &text);
  const auto row = nlohmann::json::parse(text);
  EXPECT_EQ(row["sample"], 3);
  ASSERT_EQ(row["top"].size(), 2u);
  EXPECT_EQ(row["top"][0]["class"], "b");
  EXPECT_EQ(row["top"][0]["index"], 1);
  EXPECT_NEAR(row["top"][0]["probability"].get<double>(), 0.5, 1e-6);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(PredictionRows, NpyIsWhatNumpyReads) {
  const PredictionRows rows = rows_of(PredictionFormat::kNpy, 3, 1, {});
  const std::string header = rows.header(2);
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<uint8_t>(header[8]) + 256 * static_cast<uint8_t>(header[9]) + 10,
            static_cast<int>(header.size()));
  EXPECT_THAT(header, testing::HasSubstr("'<f4'"));
  EXPECT_THAT(header, testing::HasSubstr("(2, 3)"));
  std::string body;
  rows.add(0, "x", kThree, &body);
  float values[3];
  ASSERT_EQ(body.size(), sizeof values);
  std::memcpy(values, body.data(), sizeof values);
  EXPECT_FLOAT_EQ(values[0], 0.25F);
  EXPECT_FLOAT_EQ(values[1], 0.5F);
}

TEST(PredictionRows, LargeLogitsGiveNumbers) {
  const PredictionRows rows = rows_of(PredictionFormat::kCsv, 2, 1, {});
  std::string text;
  rows.add(0, "x", std::vector<float>{10000, -10000}, &text);
  EXPECT_EQ(text, "0,x,0,1\n");
}

TEST(PredictionRows, OneLogitIsThatOfTheSecondClass) {
  PredictionContent content;
  content.shape = {1};
  content.classes = content.top = 2;
  content.class_names = {"no", "yes"};
  const PredictionRows rows(PredictionFormat::kCsv, content);
  std::string text;
  rows.add(0, "x", std::vector<float>{std::log(3.0F)}, &text);
  rows.add(1, "y", std::vector<float>{0}, &text);
  EXPECT_EQ(text, "0,x,yes,0.75,no,0.25\n1,y,no,0.5,yes,0.5\n");
  const PredictionRows array(PredictionFormat::kNpy, content);
  EXPECT_THAT(array.header(5), testing::HasSubstr("(5, 2)"));
}

TEST(PredictionRows, EachOfSeveralLabelsHasTheSigmoidOfItsLogit) {
  PredictionContent content;
  content.kind = PredictionKind::kLabels;
  content.shape = {3};
  content.classes = 3;
  content.top = 2;
  const std::vector<float> logits = {std::log(3.0F), -1000, std::log(9.0F)};
  const PredictionRows rows(PredictionFormat::kCsv, content);
  std::string text;
  rows.add(0, "x", logits, &text);
  EXPECT_EQ(text, "0,x,2,0.9,0,0.75\n");
  const PredictionRows array(PredictionFormat::kNpy, content);
  EXPECT_THAT(array.header(5), testing::HasSubstr("(5, 3)"));
  text.clear();
  array.add(0, "x", logits, &text);
  EXPECT_EQ(values_of<float>(text)[1], 0);
  EXPECT_FLOAT_EQ(values_of<float>(text)[2], 0.9F);
}

TEST(PredictionRows, AMapOfOneLogitIsOfClassOneWhereItIsAboveZero) {
  const PredictionRows rows = rows_of(PredictionFormat::kNpy, PredictionKind::kMap, {1, 1, 3});
  std::string text;
  rows.add(0, "x", std::vector<float>{-1, 0, 2}, &text);
  EXPECT_EQ(values_of<uint8_t>(text), (std::vector<uint8_t>{0, 0, 1}));
}

TEST(PredictionRows, NumbersHaveAValue) {
  const std::vector<float> value = {0.1F};
  const auto text_in = [&](PredictionFormat format) {
    const PredictionRows rows = rows_of(format, PredictionKind::kNumber, {1});
    std::string text = rows.header(9);
    rows.add(3, "a,b", value, &text);
    return text;
  };
  EXPECT_EQ(text_in(PredictionFormat::kCsv), "sample,name,value\n3,\"a,b\",0.100000001\n");
  const auto row = nlohmann::json::parse(text_in(PredictionFormat::kJsonl));
  EXPECT_EQ(row["value"].get<float>(), 0.1F);
  const std::string array = text_in(PredictionFormat::kNpy);
  EXPECT_THAT(array, testing::HasSubstr("(9, )"));
  EXPECT_EQ(values_of<float>(array.substr(array.size() - 4)), value);
}

TEST(PredictionRows, AMapHasTheLowestOfTheLikeliestClassesAtEachPlace) {
  const PredictionRows rows = rows_of(PredictionFormat::kNpy, PredictionKind::kMap, {3, 2, 2});
  EXPECT_THAT(rows.header(7), testing::HasSubstr("'|u1'"));
  EXPECT_THAT(rows.header(7), testing::HasSubstr("(7, 2, 2)"));
  std::string text;
  rows.add(0, "x", std::vector<float>{0, 1, 2, 3, 0, 2, 1, 3, -1, 2, 5, 3}, &text);
  EXPECT_EQ(values_of<uint8_t>(text), (std::vector<uint8_t>{0, 1, 2, 0}));

  const PredictionRows wide = rows_of(PredictionFormat::kNpy, PredictionKind::kMap, {300, 1, 1});
  EXPECT_THAT(wide.header(7), testing::HasSubstr("'<i4'"));
  std::vector<float> logits(300, 0);
  logits[290] = 1;
  text.clear();
  wide.add(0, "x", logits, &text);
  EXPECT_EQ(values_of<int32_t>(text), std::vector<int32_t>{290});
}

TEST(PredictionRows, LogitsStayAsTheyAre) {
  const PredictionRows rows = rows_of(PredictionFormat::kNpy, PredictionKind::kLogits, {2, 1, 2});
  EXPECT_THAT(rows.header(7), testing::HasSubstr("(7, 2, 1, 2)"));
  const std::vector<float> logits = {0.5F, -3, 2, 1e30F};
  std::string text;
  rows.add(0, "x", logits, &text);
  EXPECT_EQ(values_of<float>(text), logits);
}

}  // namespace
}  // namespace lockstep
