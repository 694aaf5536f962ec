#include "data/formats/shards/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/crc32c.h"
#include "data/dataset/dataset.h"
#include "data/formats/shards/tf_example.h"
#include "data/open/detect_format.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/tfrecord_samples.h"
#include "tests/unit/data/support/shard_checks.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string fixed(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// With any length, true or not.
std::string record(const std::string& data, uint64_t length) {
  const std::string head = fixed(length, 8);
  return head + fixed(masked_crc32c(head), 4) + data + fixed(masked_crc32c(data), 4);
}

const ParseShard kParse = [](std::span<const uint8_t> shard) { return samples_of_tfrecord(shard); };

std::string said_of_record(const std::string& shard) {
  return said_of(kParse, shard);
}

TEST(Tfrecord, SamplesOfTensorflowDatasetsAreFound) {
  const std::string shard = tfrecord_sample("datasets");
  const auto samples = samples_of_tfrecord(span_of(shard));
  ASSERT_TRUE(samples.is_ok()) << samples.status().message();
  EXPECT_THAT(seen_in(shard, *samples), ElementsAre(SeenSample{tfrecord_sample("red_file"), 2},
                                                    SeenSample{tfrecord_sample("green_file"), 0},
                                                    SeenSample{tfrecord_sample("blue_file"), 7},
                                                    SeenSample{tfrecord_sample("grey_file"), 1}));
  EXPECT_EQ((*samples)[0].width, 9);
  EXPECT_EQ((*samples)[0].height, 7);
  EXPECT_EQ((*samples)[3].channels, 1);
}

TEST(Tfrecord, OfSeveralImagesAndNumbersTheNameDecides) {
  const std::string shard = tfrecord_sample("imagenet");
  const auto samples = samples_of_tfrecord(span_of(shard));
  ASSERT_TRUE(samples.is_ok()) << samples.status().message();
  EXPECT_THAT(seen_in(shard, *samples), ElementsAre(SeenSample{tfrecord_sample("red_file"), 2},
                                                    SeenSample{tfrecord_sample("blue_file"), 7}));
  const std::string other = tfrecord_sample("other_numbers");
  EXPECT_THAT(samples_of_tfrecord(span_of(other)).status(),
              FailsWith(Code::kBadData, Names("n (a whole number)"), Advises("data.label")));
  EXPECT_EQ(seen_in(other, *samples_of_tfrecord(span_of(other), {"", "n"}))[0].label, 3U);
}

TEST(Tfrecord, WhatIsNoSampleIsSaid) {
  EXPECT_EQ(said_of_record(tfrecord_sample("empty")), "");
  EXPECT_THAT(said_of_record(tfrecord_sample("two_images")),
              AllOf(Names("byte 0"), Says("record"), HasSubstr("several images")));
  EXPECT_THAT(said_of_record(tfrecord_sample("several_values")), Says("no feature", "JPEG"));
  EXPECT_THAT(said_of_record(tfrecord_sample("texts")), Says("no feature", "JPEG"));
  EXPECT_THAT(said_of_record(tfrecord_sample("no_label")), Says("no label"));
  EXPECT_THAT(said_of_record(tfrecord_sample("negative_label")),
              AllOf(Says("label -1"), Advises("0 to 65535")));
}

TEST(Tfrecord, DamageIsSeen) {
  const std::string good = tfrecord_sample("datasets");
  EXPECT_THAT(said_of_record(good.substr(0, good.size() - 1)), HasSubstr("is truncated"));
  EXPECT_THAT(said_of_record(good.substr(0, 15)), HasSubstr("is truncated"));
  EXPECT_THAT(said_of_record(good + std::string(16, 'x')),
              HasSubstr("no record at byte " + std::to_string(good.size())));
  EXPECT_THAT(said_of_record(record("abc", UINT64_MAX)), HasSubstr("is truncated"));
  EXPECT_THAT(said_of_record(record("abc", UINT64_MAX - 11)), HasSubstr("is truncated"));
  EXPECT_THAT(said_of_record(record("abc", 4)), HasSubstr("is truncated"));
  EXPECT_THAT(said_of_record(record("abc", 3)), Says("tensorflow.train.Example"));
  EXPECT_THAT(said_of_record("\x1f\x8b" + good), HasSubstr("gunzip"));
  expect_no_damage_is_taken_for_more(kParse, tfrecord_sample("imagenet"));
}

TEST(TfExample, DamageIsSeenAndCostsNothing) {
  const auto walk = [](const std::string& text) {
    return walk_example(span_of(text), [](const TfFeature&) { return Status::ok(); }).is_ok();
  };
  EXPECT_TRUE(walk(""));
  EXPECT_TRUE(walk(std::string("\x0a\x00", 2)));
  EXPECT_FALSE(walk("\x0a"));
  EXPECT_FALSE(walk("\x0a\x01"));
  EXPECT_FALSE(walk("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));  // longer than memory
  EXPECT_FALSE(walk("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"));  // a number without an end
  EXPECT_FALSE(walk(std::string("\x00\x00", 2)));                      // no field is 0
  EXPECT_FALSE(walk("\x0b\x0c"));                                      // groups
}

class TfrecordFiles : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& sample) {
    write_file(dir_.path(name), tfrecord_sample(sample));
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& path, Split split = Split::kTrain) {
    return open_dataset(spec_of(path), split, cache_.path(), {},
                        {.frame = {CropKind::kRandomResized, 4, 0}});
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

TEST_F(TfrecordFiles, AreFoundByNameAndContent) {
  put("fashion-train.tfrecord-00000-of-00002", "datasets");
  put("fashion-train.tfrecord-00001-of-00002", "empty");
  put("fashion-test.tfrecord-00000-of-00001", "imagenet");
  write_file(dir_.path("dataset_info.json"), "{}");
  EXPECT_EQ(*detect_format(dir_.path()), "tfrecord");
  EXPECT_TRUE(has_eval_files(dir_.path()));
  const auto train = open(dir_.path());
  ASSERT_TRUE(train.is_ok()) << train.status().message();
  EXPECT_EQ((*train)->samples(), 4U);
  EXPECT_EQ((*train)->classes(), 8U);
  EXPECT_THAT((*train)->name_of(0), Names("-00000-of-00002", "at byte"));
  EXPECT_EQ((*open(dir_.path(), Split::kEval))->samples(), 2U);
  const std::string one = dir_.path("fashion-test.tfrecord-00000-of-00001");
  EXPECT_EQ(*detect_format(one), "tfrecord");
  EXPECT_EQ((*open(one))->samples(), 2U);
}

TEST_F(TfrecordFiles, WithoutAnEndingTheyAreKnownByTheirFirstBytes) {
  put("train-00000-of-00001", "imagenet");
  put("validation-00000-of-00001", "datasets");
  EXPECT_EQ(*detect_format(dir_.path()), "tfrecord");
  EXPECT_EQ((*open(dir_.path()))->samples(), 2U);
  EXPECT_EQ((*open(dir_.path(), Split::kEval))->samples(), 4U);
  write_file(dir_.path("notes-00000-of-00001"), "these are no records");
  EXPECT_FALSE(is_tfrecord_file(dir_.path("notes-00000-of-00001")));
  EXPECT_EQ((*open(dir_.path()))->samples(), 2U);
}

TEST_F(TfrecordFiles, ErrorsNameTheShard) {
  put("a.tfrecord", "no_label");
  EXPECT_THAT(open(dir_.path()).status().message(),
              AllOf(testing::StartsWith(dir_.path("a.tfrecord") + " has a record at byte 0"),
                    Says("no label")));
  put("a.tfrecord", "empty");
  EXPECT_THAT(open(dir_.path()).status().message(), Says("no sample"));
  write_file(dir_.path("a.tfrecord"), "\x1f\x8b compressed");
  EXPECT_EQ(*detect_format(dir_.path()), "tfrecord");
  EXPECT_THAT(open(dir_.path()).status().message(), AllOf(Names("a.tfrecord"), Says("corrupt")));
}

}  // namespace
}  // namespace lockstep::data
