#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "data/dataset/facts.h"
#include "data/dataset/framed_dataset.h"
#include "data/loader/sample_reader.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "data/transform/transform_list.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/array_files.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using testing::ElementsAreArray;

constexpr uint64_t kImages = 5;
constexpr uint64_t kPlane = 6 * 5;
constexpr uint64_t kValues = 2 * kPlane;  // of an image of 2 channels

// Numbers that float16 holds, too.
float value_at(uint64_t image, uint64_t i) {
  return static_cast<float>((image * kValues + i) * 37 % 256) / 128 - 1;
}

uint16_t half_of(float number) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  if (number == 0) return 0;
  const uint32_t exponent = ((bits >> 23) & 0xffU) - 112;
  return static_cast<uint16_t>((bits >> 16 & 0x8000U) | exponent << 10 | (bits >> 13 & 0x3ffU));
}

template <typename T>
T stored_as(float number) {
  if constexpr (std::is_same_v<T, uint16_t>)
    return half_of(number);
  else
    return number;
}

// Makes an array of (N, 2, 6, 5), or with the channels last.
template <typename T>
TestArray float_images(const std::string& descr, bool is_last = false) {
  std::vector<T> values;
  for (uint64_t n = 0; n < kImages; ++n) {
    for (uint64_t i = 0; i < kValues; ++i)
      values.push_back(stored_as<T>(value_at(n, is_last ? i % 2 * kPlane + i / 2 : i)));
  }
  return test_array(
      "image", descr,
      is_last ? std::vector<uint64_t>{kImages, 6, 5, 2} : std::vector<uint64_t>{kImages, 2, 6, 5},
      values);
}

class FloatImages : public testing::TestWithParam<std::string> {
 protected:
  void put(const std::vector<TestArray>& arrays, const std::string& stem = "") {
    write_arrays(dir_.path("data"), stem, GetParam(), arrays);
  }
  Result<std::unique_ptr<Dataset>> open(const ColumnNames& columns, Split split = Split::kTrain,
                                        const std::string& format = "auto") {
    return open_dataset(spec_of(dir_.path("data"), format), split, cache_.path(), {},
                        {.columns = columns});
  }
  Result<std::unique_ptr<Dataset>> opened_of(const TestArray& image,
                                             const std::string& format = "auto") {
    std::filesystem::remove_all(dir_.path("data"));
    put({image, test_array<int64_t>("label", "<i8", {kImages}, {0, 1, 2, 0, 1})});
    return open({.inputs = {"image"}, .targets = {"label"}}, Split::kTrain, format);
  }
  static std::vector<float> read_one(const Dataset& data, uint64_t i) {
    const auto reader = SampleReader::create(data, {}, data.statistics());
    EXPECT_TRUE(reader.is_ok());
    std::vector<float> values(data.shape().elements());
    EXPECT_EQ(reader->input_bytes(), values.size() * sizeof(float));
    int64_t label = -1;
    const Status has_read = reader->read(i, reinterpret_cast<std::byte*>(values.data()), &label);
    EXPECT_TRUE(has_read.is_ok()) << has_read.message();
    EXPECT_EQ(label, static_cast<int64_t>(i % 3));
    return values;
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

TEST_P(FloatImages, EveryWidthAndOrderOfAxesGivesTheSameFloats) {
  for (const auto& image :
       {float_images<float>("<f4"), float_images<double>("<f8"), float_images<uint16_t>("<f2"),
        float_images<float>("<f4", true), float_images<double>("<f8", true)}) {
    SCOPED_TRACE(image.descr + " " + array_files::list_of(image.dims));
    const auto opened = opened_of(image);
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    const Dataset& data = **opened;
    EXPECT_EQ(data.shape().model_sizes(), (std::vector<int64_t>{2, 6, 5}));
    EXPECT_TRUE(data.statistics().empty());
    for (uint64_t n = 0; n < kImages; ++n) {
      std::vector<float> wanted;
      for (uint64_t i = 0; i < kValues; ++i) wanted.push_back(value_at(n, i));
      EXPECT_THAT(read_one(data, n), ElementsAreArray(wanted));
    }
  }
}

TEST_P(FloatImages, WhereTwoAxesMayBeTheChannelsTheFormatSays) {
  const auto image =
      test_array("image", "<f4", {kImages, 3, 5, 4}, std::vector<float>(kImages * 60));
  EXPECT_THAT(opened_of(image), FailsWith(Code::kUsage, Names("image"), Advises("npy_nchw")));
  if (GetParam() == ".safetensors") return;
  const auto first = opened_of(image, "npy_nchw");
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_EQ((*first)->shape().model_sizes(), (std::vector<int64_t>{3, 5, 4}));
  const auto last = opened_of(image, "npy_nhwc");
  ASSERT_TRUE(last.is_ok()) << last.status().message();
  EXPECT_EQ((*last)->shape().model_sizes(), (std::vector<int64_t>{4, 3, 5}));
}

TEST_P(FloatImages, TheDimensionsSayWhatASampleIs) {
  const std::vector<float> values(kImages * 600, 0.5F);
  const auto shape_of = [&](std::vector<uint64_t> dims) {
    dims.insert(dims.begin(), kImages);
    uint64_t count = 1;
    for (const uint64_t dim : dims) count *= dim;
    const auto opened = opened_of(test_array(
        "image", "<f4", dims,
        std::vector<float>(values.begin(), values.begin() + static_cast<int64_t>(count))));
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return opened.is_ok() ? (*opened)->shape().model_sizes() : std::vector<int64_t>();
  };
  EXPECT_EQ(shape_of({7}), (std::vector<int64_t>{7}));
  EXPECT_EQ(shape_of({3, 4}), (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(shape_of({3, 8, 7}), (std::vector<int64_t>{3, 8, 7}));
  EXPECT_EQ(shape_of({8, 7, 3}), (std::vector<int64_t>{3, 8, 7}));
  EXPECT_EQ(shape_of({9, 8, 7}), (std::vector<int64_t>{9, 8, 7}));
  EXPECT_EQ(shape_of({1, 5, 6, 7}), (std::vector<int64_t>{1, 5, 6, 7}));
}

TEST_P(FloatImages, WidthsAndVolumesAreOfTheFingerprint) {
  std::vector<std::string> seen;
  for (const auto& [descr, dims] :
       {std::pair<std::string, std::vector<uint64_t>>{"<f4", {kImages, 6, 6}},
        {"<f2", {kImages, 12, 6}},
        {"<f4", {kImages, 1, 1, 6, 6}}}) {
    const auto opened = opened_of({"image", descr, dims, std::string(kImages * 36 * 4, '\0')});
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    EXPECT_THAT(seen, testing::Not(testing::Contains((*opened)->fingerprint())));
    seen.push_back((*opened)->fingerprint());
  }
}

TEST_P(FloatImages, EvaluationMayBeOfAnotherWidthButNotAPartOfAMixture) {
  const auto label = test_array<int64_t>("label", "<i8", {kImages}, {0, 1, 2, 0, 1});
  const auto plain = [](const std::string& descr, std::vector<uint64_t> dims, size_t bytes) {
    return TestArray{"image", descr, std::move(dims), std::string(bytes, '\0')};
  };
  put({plain("<f4", {kImages, 6, 7}, kImages * 42 * 4), label}, "train");
  put({plain("<f8", {kImages, 6, 7}, kImages * 42 * 8), label}, "val");
  const ColumnNames columns{.inputs = {"image"}, .targets = {"label"}};
  const auto train = open(columns);
  const auto eval = open(columns, Split::kEval);
  ASSERT_TRUE(train.is_ok() && eval.is_ok());
  EXPECT_TRUE(check_eval_fits_train(**train, **eval).is_ok());
  EXPECT_THAT(check_parts_fit(**train, **eval),
              FailsWith(Code::kUsage, Names("of float64", "of float32"), Advises("one shape")));
}

TEST_P(FloatImages, FilesOfTwoShapesAreNoDataSet) {
  if (GetParam() == ".npy") return;  // an array is one file
  const auto label = test_array<int64_t>("label", "<i8", {kImages}, {0, 1, 2, 0, 1});
  put({test_array("image", "<f4", {kImages, 6, 1}, std::vector<float>(kImages * 6)), label},
      "train-0");
  put({test_array("image", "<f4", {kImages, 3, 2}, std::vector<float>(kImages * 6)), label},
      "train-1");
  EXPECT_THAT(open({.inputs = {"image"}, .targets = {"label"}}),
              FailsWith(Code::kBadData, Names("train-1", "train-0"), Advises("belong together")));
}

TEST_P(FloatImages, NaNInfinityAndTooLargeNumbersAreNamedWithArrayAndSample) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const double bad : {double{nan}, double{infinity}, -1e39}) {
    std::vector<double> values(kImages * 42);
    values[3 * 42 + 5] = bad;
    EXPECT_THAT(
        opened_of(test_array("image", "<f8", {kImages, 6, 7}, values)),
        FailsWith(Code::kBadData, Names("image", "sample 3", "NaN"), Advises("correct it")));
  }
  std::vector<uint16_t> halves(kImages * 42);
  halves[4 * 42] = 0x7c01;
  EXPECT_THAT(opened_of(test_array("image", "<f2", {kImages, 6, 7}, halves)),
              FailsWith(Code::kBadData, Names("image", "sample 4")));
}

// As in files that are too large to be looked at before the first step.
TEST_P(FloatImages, ANaNThatIsMetWhileReadingIsNamed) {
  auto image = test_array("image", "<f4", {kImages, 6, 7}, std::vector<float>(kImages * 42));
  const auto opened = opened_of(image);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const auto reader = SampleReader::create(**opened, {}, {});
  ASSERT_TRUE(reader.is_ok());
  std::vector<float> given(42);
  given[41] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(42);
  int64_t label = 0;
  const auto bytes =
      std::span(reinterpret_cast<const uint8_t*>(given.data()), given.size() * sizeof(float));
  EXPECT_THAT(
      reader->read(2, reinterpret_cast<std::byte*>(values.data()), &label, nullptr, {}, bytes),
      FailsWith(Code::kBadData, Names("image", "sample 2", "NaN"), Advises("correct it")));
}

TEST_P(FloatImages, NoTransformTakesFloats) {
  const auto image = test_array("image", "<f4", {kImages, 6, 7}, std::vector<float>(kImages * 42));
  auto opened = opened_of(image);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  for (const char* word : {"normalize", "flip", "pad_crop=1", "brightness=0.1", "mixup"})
    EXPECT_THAT(SampleReader::create(**opened, {word}, {}),
                FailsWith(Code::kUsage, Names("data.transforms", word, "floats"),
                          Advises("set data.transforms to []")))
        << word;
  const auto list = parse_transforms({"resize=5", "center_crop=4"});
  ASSERT_TRUE(list.is_ok());
  EXPECT_THAT(make_framed_dataset(std::move(opened).value(), list->frame),
              FailsWith(Code::kUsage, Names("data.transforms", "floats"), Advises("leave out")));
}

TEST_P(FloatImages, WhatIsNoImageOfFloatsIsRefusedByItsShape) {
  for (const std::vector<uint64_t>& dims :
       {std::vector<uint64_t>{kImages}, {kImages, 1, 1, 1, 1, 1}, {kImages, 2, 2, 0}}) {
    uint64_t count = 1;
    for (const uint64_t dim : dims) count *= dim;
    EXPECT_THAT(opened_of(test_array("image", "<f4", dims, std::vector<float>(count))),
                FailsWith(Code::kBadData, Names("image")));
  }
  EXPECT_THAT(opened_of(test_array("image", "<f8", {kImages, 2}, std::vector<double>(10))),
              FailsWith(Code::kBadData, Names("image", "float64"), Advises("write it again")));
}

TEST_P(FloatImages, InspectShowsThem) {
  ASSERT_TRUE(
      opened_of(test_array("image", "<f8", {kImages, 6, 7}, std::vector<double>(kImages * 42)))
          .is_ok());
  const auto seen = inspect_data(spec_of(dir_.path("data")), cache_.path(), {},
                                 {.columns = {.inputs = {"image"}, .targets = {"label"}}});
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_THAT(to_text(*seen), testing::HasSubstr("images of 1x6x7 (C x H x W) of float64"));
}

INSTANTIATE_TEST_SUITE_P(Formats, FloatImages, testing::Values(".npy", ".npz", ".safetensors"),
                         [](const auto& tested) { return tested.param.substr(1); });

}  // namespace
}  // namespace lockstep::data
