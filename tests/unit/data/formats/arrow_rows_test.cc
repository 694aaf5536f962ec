#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "data/dataset/dataset.h"
#include "data/dataset/fields.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

class ArrowRows : public testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> open(const ColumnNames& columns,
                                        const std::string& sample = "rows",
                                        Split split = Split::kTrain) {
    std::filesystem::create_directories(dir_.path("d"));
    write_file(dir_.path("d/train.arrow"), arrow_sample(sample));
    return open_dataset(spec_of(dir_.path("d")), split, cache_.path(), {}, {.columns = columns});
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

template <typename T>
T first_of_field(const Dataset& dataset, uint64_t i, size_t field) {
  std::vector<std::byte> record(dataset.shape().record_bytes());
  const auto fields = dataset.as<SampleFields>();
  const auto [from, number] = fields->at(i);
  EXPECT_TRUE(from.read_record(number, record.data()).is_ok());
  T value;
  std::memcpy(&value, record.data() + dataset.shape().fields->offset(field), sizeof value);
  return value;
}

const ColumnNames kAllColumns{
    .inputs = {"features"}, .targets = {"price", "count", "kind", "box"}, .weight = "w"};

TEST_F(ArrowRows, HaveTargetsOfEveryTypeAndAWeight) {
  for (const char* sample : {"rows", "rows_zstd"}) {
    const auto opened = open(kAllColumns, sample);
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    const Dataset& data = **opened;
    EXPECT_TRUE(data.shape().is_row);
    EXPECT_EQ(data.samples(), 5U);
    EXPECT_EQ(text_of(*data.shape().fields),
              "price (float32), count (int64), kind (class), box (int64 3), w (float32)");
    EXPECT_EQ(data.classes(), 3U);
    EXPECT_EQ(label_of(data, 4), 1U) << "of the second batch";
    EXPECT_EQ(first_of_field<float>(data, 1, 0), -2);
    EXPECT_EQ(first_of_field<int64_t>(data, 1, 1), -1);
    EXPECT_EQ(first_of_field<int64_t>(data, 4, 3), 12);
    EXPECT_EQ(first_of_field<float>(data, 4, 4), 3);
  }
  EXPECT_EQ((*open(kAllColumns))->fingerprint(), (*open(kAllColumns, "rows_zstd"))->fingerprint());
}

TEST_F(ArrowRows, TheRowsAreFoundByTheirNameAndATableOfNumbersHasNoLabel) {
  const auto opened = open({.targets = {"price"}});
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  EXPECT_FALSE((*opened)->shape().has_label());
  EXPECT_EQ((*opened)->classes(), 1U);
  const auto labelled = open({.targets = {"kind"}});
  ASSERT_TRUE(labelled.is_ok()) << labelled.status().message();
  EXPECT_TRUE((*labelled)->shape().has_label());
}

TEST_F(ArrowRows, WhatIsTheLabelIsWhatTheTrainingDataSay) {
  std::filesystem::create_directories(dir_.path("d"));
  write_file(dir_.path("d/val.arrow"), arrow_sample("rows"));
  const auto eval = open(kAllColumns, "rows", Split::kEval);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_EQ((*eval)->shape(), (*open(kAllColumns))->shape());
}

TEST_F(ArrowRows, WhatIsWrongIsSaidWithTheColumn) {
  ColumnNames columns = kAllColumns;
  EXPECT_THAT(open(columns, "rows_not_finite"),
              FailsWith(Code::kBadData, Names("train.arrow (column price)", "sample 0")));
  columns.targets[0] = "prize";
  EXPECT_THAT(open(columns), FailsWith(Code::kBadData, Names("prize", "data.targets", "price")));
  columns.targets[0] = "name";
  EXPECT_THAT(open(columns), FailsWith(Code::kBadData, Names("name", "data.targets", "string")));
  columns.targets[0] = "w";
  EXPECT_THAT(open(columns), FailsWith(Code::kBadData, Names("w", "twice")));
  columns = kAllColumns;
  columns.weight = "box";
  columns.targets = {"price"};
  EXPECT_THAT(open(columns), FailsWith(Code::kBadData, Names("box", "data.weight", "(N, 3)")));
  columns.weight = "count";
  EXPECT_THAT(open(columns), FailsWith(Code::kBadData, Names("count", "weight", "sample 1")));
  columns.inputs = {"features", "box"};
  EXPECT_THAT(open(columns), FailsWith(Code::kUsage, Names("data.inputs", "features", "box")));
}

}  // namespace
}  // namespace lockstep::data
