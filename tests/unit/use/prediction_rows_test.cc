// Predictions as text and as an array.
#include "worker/use/prediction_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

const std::vector<float> kThree = {std::log(0.25F), std::log(0.5F), std::log(0.25F)};

TEST(PredictionRows, CsvHasTheLikeliestFirstAndTheLowerOnATie) {
  const PredictionRows rows(PredictionFormat::kCsv, 3, 3, {"a,b", "c", "d \"e\""});
  std::string text = rows.header(1);
  rows.add(7, "x.png", kThree, &text);
  EXPECT_EQ(text,
            "sample,name,class_1,probability_1,class_2,probability_2,class_3,probability_3\n"
            "7,x.png,c,0.5,\"a,b\",0.25,\"d \"\"e\"\"\",0.25\n");
}

TEST(PredictionRows, WithoutNamesAClassIsItsNumber) {
  const PredictionRows rows(PredictionFormat::kCsv, 3, 1, {});
  std::string text;
  rows.add(0, "x", kThree, &text);
  EXPECT_EQ(text, "0,x,1,0.5\n");
}

TEST(PredictionRows, JsonlHasALineASample) {
  const PredictionRows rows(PredictionFormat::kJsonl, 3, 2, {"a", "b", "c"});
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
  const PredictionRows rows(PredictionFormat::kNpy, 3, 1, {});
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
  const PredictionRows rows(PredictionFormat::kCsv, 2, 1, {});
  std::string text;
  rows.add(0, "x", std::vector<float>{10000, -10000}, &text);
  EXPECT_EQ(text, "0,x,0,1\n");
}

}  // namespace
}  // namespace lockstep
