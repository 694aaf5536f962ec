#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>

#include "data/dataset/facts.h"
#include "data/dataset/fields.h"
#include "data/loader/sample_reader.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/array_files.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSamples = 6;

std::vector<TestArray> good_arrays() {
  std::vector<uint8_t> pixels(kSamples * 2 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i);
  std::vector<double> depth(kSamples * 2 * 3);
  for (size_t i = 0; i < depth.size(); ++i) depth[i] = static_cast<double>(i) / 4;
  std::vector<uint8_t> mask(pixels.rbegin(), pixels.rend());
  return {test_array<uint8_t>("image", "|u1", {kSamples, 2, 3}, pixels),
          test_array<double>("depth", "<f8", {kSamples, 1, 2, 3}, depth),
          test_array<uint8_t>("mask", "|u1", {kSamples, 2, 3}, mask),
          test_array<float>("price", "<f4", {kSamples}, {0.5F, 1.5F, -2, 3, 4, 5}),
          test_array<int32_t>("kind", "<i4", {kSamples}, {0, 1, 2, 0, 1, 2}),
          test_array<uint16_t>("w", "<u2", {kSamples, 1}, {0, 1, 2, 3, 4, 5})};
}

ColumnNames all_names() {
  return {.inputs = {"image", "depth"}, .targets = {"mask", "price", "kind"}, .weight = "w"};
}

// By the ending of the files.
class NamedArrays : public testing::TestWithParam<std::string> {
 protected:
  void put(const std::string& stem, const std::vector<TestArray>& arrays,
           const std::string& below = "data") {
    write_arrays(dir_.path(below), stem, GetParam(), arrays);
  }
  Result<std::unique_ptr<Dataset>> open(const ColumnNames& columns, Split split = Split::kTrain,
                                        const std::string& format = "auto") {
    return open_dataset(spec_of(dir_.path("data"), format), split, cache_.path(), {},
                        {.columns = columns});
  }
  Status failure(const std::vector<TestArray>& arrays, const ColumnNames& columns = all_names()) {
    std::filesystem::remove_all(dir_.path("data"));
    put("", arrays);
    const auto opened = open(columns);
    return opened.is_ok() ? Status::ok() : opened.status();
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

std::vector<std::byte> record_of_sample(const Dataset& dataset, uint64_t i) {
  std::vector<std::byte> record(dataset.shape().record_bytes());
  const auto fields = dataset.as<SampleFields>();
  const auto [from, number] = fields->at(i);
  EXPECT_TRUE(from.read_record(number, record.data()).is_ok());
  return record;
}

template <typename T>
std::vector<T> field_of_sample(const Dataset& dataset, uint64_t i, size_t field) {
  const auto record = record_of_sample(dataset, i);
  const FieldList& fields = *dataset.shape().fields;
  std::vector<T> values(fields.specs()[field].elements());
  std::memcpy(values.data(), record.data() + fields.offset(field), values.size() * sizeof(T));
  return values;
}

TEST_P(NamedArrays, EveryArrayIsReadInItsTypeAndTheFirstWholeNumberIsTheLabel) {
  put("", good_arrays());
  const auto opened = open(all_names());
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const Dataset& data = **opened;
  EXPECT_EQ(data.samples(), kSamples);
  EXPECT_EQ(data.classes(), 3U);
  EXPECT_EQ("." + data.format(), GetParam());
  EXPECT_EQ(text_of(*data.shape().fields),
            "depth (float32 1x2x3), mask (uint8 2x3), price (float32), kind (class), w (float32)");
  for (uint64_t i = 0; i < kSamples; ++i) {
    EXPECT_EQ(stored_sample(data, i)[1], 6 * i + 1);
    EXPECT_EQ(label_of(data, i), i % 3);
    EXPECT_EQ(field_of_sample<float>(data, i, 0)[2], static_cast<float>(6 * i + 2) / 4);
    EXPECT_EQ(field_of_sample<uint8_t>(data, i, 1)[5], 35 - (6 * i + 5));
    EXPECT_THAT(field_of_sample<float>(data, i, 4), ElementsAre(static_cast<float>(i)));
  }
  EXPECT_THAT(field_of_sample<float>(data, 2, 2), ElementsAre(-2));
  const auto reader = SampleReader::create(data, {"normalize"}, data.statistics());
  ASSERT_TRUE(reader.is_ok());
  std::vector<std::byte> inputs(2 * reader->input_bytes());
  std::vector<int64_t> labels(2 * data.shape().label_words());
  ASSERT_TRUE(reader->read_range(1, 3, inputs.data(), labels.data()).is_ok());
  EXPECT_EQ(labels[1], 2);
  EXPECT_EQ(std::memcmp(records_of(data.shape(), labels.data(), 2) + data.shape().record_bytes(),
                        record_of_sample(data, 2).data(), data.shape().record_bytes()),
            0);
}

TEST_P(NamedArrays, WholeNumbersThatCanBeNoClassAreAField) {
  auto arrays = good_arrays();
  arrays[4] = test_array<int32_t>("kind", "<i4", {kSamples}, {0, 1, -2, 0, 1, 2});
  arrays.push_back(test_array<int8_t>("age", "|i1", {kSamples}, {0, 1, 2, 3, 4, -5}));
  arrays.push_back(test_array<uint64_t>("id", "<u8", {kSamples}, {9, 8, 7, 6, 5, 70'000}));
  put("", arrays);
  const auto opened = open({.inputs = {"image", "age"}, .targets = {"kind", "id"}});
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  EXPECT_EQ(text_of(*(*opened)->shape().fields), "age (int64), kind (int64), id (int64)");
  EXPECT_FALSE((*opened)->shape().has_label());
  EXPECT_EQ(label_of(**opened, 5), 0U);
  EXPECT_THAT(field_of_sample<int64_t>(**opened, 5, 0), ElementsAre(-5));
  EXPECT_THAT(field_of_sample<int64_t>(**opened, 2, 1), ElementsAre(-2));
  EXPECT_THAT(field_of_sample<int64_t>(**opened, 5, 2), ElementsAre(70'000));
}

TEST_P(NamedArrays, FloatsOf16BitsBoolsAndRows) {
  auto arrays = good_arrays();
  arrays[0] =
      test_array<float>("image", "<f4", {kSamples, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2});
  // 1, -2, the largest, the smallest normal, the smallest, -0
  arrays[1] = test_array<uint16_t>("depth", "<f2", {kSamples},
                                   {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000});
  arrays[2] =
      test_array<uint8_t>("mask", "|b1", {kSamples, 2}, {0, 1, 1, 0, 7, 1, 0, 0, 1, 1, 0, 1});
  put("", arrays);
  const auto opened = open(all_names());
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const Dataset& data = **opened;
  EXPECT_TRUE(data.shape().is_row);
  EXPECT_EQ(data.shape().channels, 2U);
  const float wanted[] = {1, -2, 65'504, std::ldexp(1.0F, -14), std::ldexp(1.0F, -24), -0.0F};
  for (uint64_t i = 0; i < kSamples; ++i)
    EXPECT_THAT(field_of_sample<float>(data, i, 0), ElementsAre(wanted[i]));
  EXPECT_THAT(field_of_sample<uint8_t>(data, 2, 1), ElementsAre(1, 1)) << "whatever its byte is";
}

TEST_P(NamedArrays, NamesFilesAndDirectoriesSayTheSplit) {
  auto fewer = good_arrays();
  for (TestArray& array : fewer) {
    array.content.resize(array.content.size() / 2);
    array.dims[0] = 3;
  }
  for (const bool is_below : {false, true}) {
    std::filesystem::remove_all(dir_.path("data"));
    put(is_below ? "" : "train", good_arrays(), is_below ? "data/train" : "data");
    EXPECT_FALSE(has_eval_files(dir_.path("data"), all_names()));
    put(is_below ? "" : "val", fewer, is_below ? "data/val" : "data");
    EXPECT_TRUE(has_eval_files(dir_.path("data"), all_names()));
    const auto train = open(all_names());
    const auto eval = open(all_names(), Split::kEval);
    ASSERT_TRUE(train.is_ok()) << train.status().message();
    ASSERT_TRUE(eval.is_ok()) << eval.status().message();
    EXPECT_EQ((*train)->samples(), kSamples);
    EXPECT_EQ((*eval)->samples(), 3U);
    EXPECT_TRUE(check_eval_fits_train(**train, **eval).is_ok());
    const auto seen =
        inspect_data(spec_of(dir_.path("data")), cache_.path(), {}, {.columns = all_names()});
    ASSERT_TRUE(seen.is_ok()) << seen.status().message();
    EXPECT_EQ(seen->splits.size(), 2U);
  }
}

TEST_P(NamedArrays, WhatIsTheLabelIsWhatTheTrainingDataSay) {
  auto train = good_arrays();
  train[4] = test_array<int32_t>("kind", "<i4", {kSamples}, {0, 1, -2, 0, 1, 2});
  put("train", train);
  put("test", good_arrays());
  const ColumnNames columns{.inputs = {"image"}, .targets = {"kind"}};
  const auto eval = open(columns, Split::kEval);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_EQ(text_of(*(*eval)->shape().fields), "kind (int64)");
}

TEST_P(NamedArrays, WithoutTargetsTheLabelIsTheArrayThatSaysSo) {
  auto arrays = good_arrays();
  arrays[4].name = "labels";
  put("", arrays);
  const auto plain = open({});
  ASSERT_TRUE(plain.is_ok()) << plain.status().message();
  const auto same = open({.inputs = {"image"}});
  ASSERT_TRUE(same.is_ok()) << same.status().message();
  EXPECT_EQ((*same)->fingerprint(), (*plain)->fingerprint());
  EXPECT_EQ((*same)->shape(), (*plain)->shape());
  const auto weighted = open({.weight = "w"});
  ASSERT_TRUE(weighted.is_ok()) << weighted.status().message();
  EXPECT_EQ(text_of(*(*weighted)->shape().fields), "label (class), w (float32)");
  EXPECT_EQ(label_of(**weighted, 5), 2U);
  EXPECT_NE((*weighted)->fingerprint(), (*plain)->fingerprint());
}

TEST_P(NamedArrays, TheFingerprintIsThatOfAllFields) {
  put("", good_arrays());
  const std::string before = (*open(all_names()))->fingerprint();
  EXPECT_EQ((*open(all_names()))->fingerprint(), before);
  ColumnNames other = all_names();
  std::swap(other.targets[0], other.targets[1]);
  EXPECT_NE((*open(other))->fingerprint(), before);
  auto arrays = good_arrays();
  for (const size_t changed : {1U, 2U, 3U, 5U}) {
    arrays = good_arrays();
    arrays[changed].content[1] = 1;
    put("", arrays);
    EXPECT_NE((*open(all_names()))->fingerprint(), before) << changed;
  }
}

TEST_P(NamedArrays, WhatIsWrongIsSaidWithTheArray) {
  const auto arrays = good_arrays();
  const auto with = [&](size_t i, const TestArray& array) {
    auto changed = arrays;
    changed[i] = array;
    return changed;
  };
  ColumnNames names = all_names();
  names.inputs[1] = "dept";
  EXPECT_THAT(failure(arrays, names),
              FailsWith(Code::kBadData, Names("dept", "data.inputs", "image", "depth", "mask")));
  if (GetParam() != ".safetensors") {  // else they are taken for tokens
    EXPECT_THAT(failure({arrays[5]}, {.inputs = {"a"}, .targets = {"b"}}),
                FailsWith(Code::kNoInput, Names("a", "data.inputs", "w")));
  }
  names = all_names();
  names.weight = "price";
  EXPECT_THAT(failure(arrays, names),
              FailsWith(Code::kUsage, Names("data.weight", "data.targets")));
  names.weight = "kind";
  names.targets = {"price"};
  EXPECT_TRUE(failure(arrays, names).is_ok()) << "whole numbers can be weights";
  EXPECT_THAT(failure(with(3, test_array<float>("price", "<f4", {5}, {1, 2, 3, 4, 5}))),
              FailsWith(Code::kBadData, Names("image", "price", "6", "5")));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(failure(with(3, test_array<float>("price", "<f4", {kSamples}, {1, 2, 3, 4, nan, 5}))),
              FailsWith(Code::kBadData, Names("price", "sample 4")));
  EXPECT_THAT(
      failure(with(3, test_array<double>("price", "<f8", {kSamples}, {1, 1e39, 3, 4, 4, 5}))),
      FailsWith(Code::kBadData, Names("price", "sample 1")));
  EXPECT_THAT(
      failure(with(3, test_array<uint16_t>("price", "<f2", {kSamples}, {0, 0, 0x7c00, 0, 0, 0}))),
      FailsWith(Code::kBadData, Names("price", "sample 2")));
  EXPECT_THAT(
      failure(with(2, test_array<uint64_t>("mask", "<u8", {kSamples, 2},
                                           {0, 0, 0, ~uint64_t{0}, 0, 0, 0, 0, 0, 0, 0, 0}))),
      FailsWith(Code::kBadData, Names("mask", "sample 1")));
  EXPECT_THAT(failure(with(5, test_array<float>("w", "<f4", {kSamples}, {1, 2, 3, -1, 1, 5}))),
              FailsWith(Code::kBadData, Names("w", "sample 3", "weight")));
  EXPECT_THAT(failure(with(5, test_array<float>("w", "<f4", {kSamples, 2},
                                                {1, 2, 3, 1, 1, 5, 1, 2, 3, 1, 1, 5}))),
              FailsWith(Code::kBadData, Names("w", "(N, 2)")));
  EXPECT_THAT(failure(with(1, test_array<float>("depth", "<f4", {kSamples, 0}, {}))),
              FailsWith(Code::kBadData, Names("depth")));
  EXPECT_THAT(failure(with(1, test_array<uint8_t>("depth", "|u1", {kSamples, 1, 1, 1, 1, 1},
                                                  {1, 2, 3, 4, 5, 6}))),
              FailsWith(Code::kBadData, Names("depth", "dimensions")));
  EXPECT_THAT(failure(with(0, test_array<int32_t>("image", "<i4", {kSamples}, {1, 2, 3, 4, 5, 6}))),
              FailsWith(Code::kBadData, Names("image", "int32")));
}

TEST_P(NamedArrays, WordsThatMoveOrMixTheImageAloneAreRefused) {
  put("", good_arrays());
  const auto opened = open(all_names());
  ASSERT_TRUE(opened.is_ok());
  for (const char* word : {"flip", "pad_crop=1", "rotate=10", "mixup"})
    EXPECT_THAT(SampleReader::create(**opened, {word}, (*opened)->statistics()),
                FailsWith(Code::kUsage, Names("data.transforms")))
        << word;
  EXPECT_TRUE(SampleReader::create(**opened, {"brightness=0.1"}, (*opened)->statistics()).is_ok());
  const auto numbers = open({.inputs = {"image"}, .targets = {"price"}});
  ASSERT_TRUE(numbers.is_ok());
  EXPECT_TRUE(SampleReader::create(**numbers, {"flip"}, (*numbers)->statistics()).is_ok());
}

TEST_P(NamedArrays, AFieldThatChangesWhileItIsReadIsNoticed) {
  put("", good_arrays());
  const auto opened = open(all_names());
  ASSERT_TRUE(opened.is_ok());
  const uint64_t first = 0;
  EXPECT_TRUE((*opened)->unchanged(std::span(&first, 1)).is_ok());
  const std::string victim =
      dir_.path("data") + (GetParam() == ".npy" ? "/price.npy" : "/x" + GetParam());
  std::filesystem::resize_file(victim, std::filesystem::file_size(victim) - 1);
  EXPECT_THAT((*opened)->unchanged(std::span(&first, 1)), FailsWith(Code::kBadData, Names(victim)));
}

INSTANTIATE_TEST_SUITE_P(Formats, NamedArrays, testing::Values(".npy", ".npz", ".safetensors"),
                         [](const auto& tested) { return tested.param.substr(1); });

TEST(NamedShards, FilesThatEachHoldAllArraysAreOneDataSet) {
  TemporaryDirectory dir;
  TemporaryDirectory cache;
  for (const char* stem : {"train-00000", "train-00001", "val-00000"})
    write_arrays(dir.path("d"), stem, ".safetensors", good_arrays());
  const SampleCut cut{.columns = all_names()};
  const auto train = open_dataset(spec_of(dir.path("d")), Split::kTrain, cache.path(), {}, cut);
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  EXPECT_EQ((*train)->samples(), 2 * kSamples);
  EXPECT_THAT(field_of_sample<float>(**train, kSamples + 2, 2), ElementsAre(-2));
  const auto eval = open_dataset(spec_of(dir.path("d")), Split::kEval, cache.path(), {}, cut);
  ASSERT_TRUE(eval.is_ok()) << eval.status().message();
  EXPECT_EQ((*eval)->samples(), kSamples);
  auto lacking = good_arrays();
  lacking.pop_back();
  write_arrays(dir.path("d"), "train-00001", ".safetensors", lacking);
  EXPECT_THAT(open_dataset(spec_of(dir.path("d")), Split::kTrain, cache.path(), {}, cut),
              FailsWith(Code::kBadData, Names("w", "train-00001.safetensors")));
}

}  // namespace
}  // namespace lockstep::data
