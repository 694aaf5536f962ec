#include "data/formats/shards/mds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset/dataset.h"
#include "data/open/detect_format.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/mds_samples.h"
#include "tests/unit/data/support/samples_of.h"
#include "tests/unit/data/support/shard_checks.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kShard = "shard.00000.mds";

std::string mds_index_error(const std::string& json) {
  auto shards = parse_mds_index(json);
  const Status status = shards.is_ok() ? choose_mds_columns(shards->front(), {}) : shards.status();
  return status.is_ok() ? "taken" : status.message();
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(MdsIndex, SaysShardsAndColumns) {
  auto shards = parse_mds_index(mds_sample("bytes/index.json"));
  ASSERT_TRUE(shards.is_ok()) << shards.status().message();
  ASSERT_FALSE(shards->empty());
  MdsShard& first = shards->front();
  ASSERT_TRUE(choose_mds_columns(first, {}).is_ok());
  EXPECT_EQ(first.name, kShard);
  EXPECT_EQ(first.columns[first.image].name, "image");
  EXPECT_EQ(first.columns[first.label].name, "label");
  auto png = parse_mds_index(mds_sample("png/index.json"));
  ASSERT_TRUE(png.is_ok()) << png.status().message();
  ASSERT_TRUE(choose_mds_columns(png->front(), {}).is_ok());
  EXPECT_EQ(png->front().columns[png->front().image].name, "x");
  EXPECT_EQ(png->front().columns[png->front().label].name, "class");
}

TEST(MdsIndex, WhatCannotBeUsedIsSaid) {
  const std::string good = mds_sample("bytes/index.json");
  EXPECT_EQ(mds_index_error(good), "taken");
  for (const char* text : {"", "{", "[]", "null", "7", "{\"shards\": 7}", "{\"shards\": []}"})
    EXPECT_EQ(mds_index_error(text), "is not an index of MDS shards") << text;
  EXPECT_THAT(mds_index_error("{\"shards\": [7]}"), Says("without the name"));
  const size_t begin = good.find('[') + 1;
  const std::string all = good.substr(begin, good.rfind(']') - begin);
  EXPECT_THAT(mds_index_error("{\"shards\": [" + all + ", " + all + "]}"), HasSubstr("twice"));
  EXPECT_THAT(mds_index_error(replaced(good, kShard, "../../x.mds")),
              AllOf(Names("../../x.mds"), Says("outside")));
  EXPECT_THAT(mds_index_error(replaced(good, kShard, "/etc/passwd")), HasSubstr("lies outside"));
  EXPECT_THAT(mds_index_error(replaced(good, "\"mds\"", "\"csv\"")), Says("csv"));
  EXPECT_THAT(mds_index_error(replaced(good, "\"column_sizes\": [", "\"column_sizes\": [1, ")),
              Says("columns"));
  EXPECT_THAT(mds_index_error(replaced(good, "null", "-1")), Says("columns"));
  EXPECT_THAT(mds_index_error(replaced(good, "8", "9")),
              AllOf(Names("label"), Says("int", "9 bytes")));
  EXPECT_THAT(mds_index_error(replaced(good, "\"bytes\"", "\"jpeg_array\"")),
              Names("image (jpeg_array)", "label (int)"));
  EXPECT_THAT(mds_index_error(mds_sample("no_label/index.json")), Advises("data.label"));
}

Result<std::vector<Extent>> samples_in(const std::string& set, std::span<const uint8_t> bytes) {
  auto shards = parse_mds_index(mds_sample(set + "/index.json"));
  EXPECT_TRUE(choose_mds_columns(shards->front(), {}).is_ok());
  shards->front().bytes = bytes.size();  // or damage would never be looked at
  return samples_of_mds(shards->front(), bytes);
}

TEST(Mds, DamageIsSeen) {
  const std::string good = mds_sample("png/shard.00000.mds");
  const ParseShard parse = [](std::span<const uint8_t> bytes) { return samples_in("png", bytes); };
  EXPECT_EQ(said_of(parse, good), "");
  EXPECT_THAT(said_of(parse, ""), Says("3 samples"));
  EXPECT_THAT(said_of(parse, good.substr(0, 12)), Says("3 samples"));
  EXPECT_THAT(said_of(parse, good.substr(0, good.size() - 1)),
              AllOf(Names("sample 2"), Says("outside the file")));
  std::string back = good;  // sample 1 begins before sample 0
  back[9] = 0;
  EXPECT_THAT(said_of(parse, back), AllOf(Names("sample 0"), Says("outside the file")));
  const auto first = static_cast<uint8_t>(good[4]) | static_cast<uint8_t>(good[5]) << 8;
  for (const char size : {'\0', '\xff'}) {
    std::string lying = good;
    lying[static_cast<size_t>(first)] = size;
    EXPECT_THAT(said_of(parse, lying), AllOf(Names("sample 0"), Says("damaged")));
  }
  expect_no_damage_is_taken_for_more(parse, good);
}

class MdsFiles : public testing::Test {
 protected:
  // All files of a set of the samples, into a directory.
  void put(const std::string& set, const std::string& below = "") {
    fs::create_directories(dir_.path(below));
    for (const auto& [name, hex] : kMdsSamples)
      if (name.starts_with(set + "/"))
        write_file(dir_.path(below + name.substr(set.size() + 1)), mds_sample(name));
  }
  Result<std::unique_ptr<Dataset>> open(Split split = Split::kTrain) {
    return open_dataset(spec_of(dir_.path()), split, cache_.path(), {},
                        {.frame = {CropKind::kRandomResized, 4, 0}});
  }
  std::string failure() {
    const auto dataset = open();
    return dataset.is_ok() ? "no failure" : dataset.status().message();
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

TEST_F(MdsFiles, AreReadSampleBySample) {
  put("bytes");
  EXPECT_EQ(*detect_format(dir_.path()), "mds");
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  ASSERT_EQ((*dataset)->samples(), 4U);
  const std::vector<SeenSample> wanted{{mds_sample("red_file"), 2},
                                       {mds_sample("green_file"), 0},
                                       {mds_sample("blue_file"), 7},
                                       {mds_sample("grey_file"), 1}};
  std::vector<SeenSample> seen;
  for (uint64_t i = 0; i < 4; ++i) {
    std::vector<uint8_t> bytes;
    ASSERT_TRUE(read_encoded(**dataset, i, bytes).is_ok());
    seen.push_back({{bytes.begin(), bytes.end()}, label_of(**dataset, i)});
  }
  EXPECT_EQ(seen, wanted);
  EXPECT_FALSE(has_eval_files(dir_.path()));  // one set serves either split
  EXPECT_EQ((*open(Split::kEval))->fingerprint(), (*dataset)->fingerprint());
}

TEST_F(MdsFiles, SplitsAreDirectories) {
  put("bytes", "train/");
  put("png", "val/");
  EXPECT_EQ(*detect_format(dir_.path()), "mds");
  EXPECT_TRUE(has_eval_files(dir_.path()));
  EXPECT_EQ((*open())->samples(), 4U);
  EXPECT_EQ((*open(Split::kEval))->samples(), 3U);
}

TEST_F(MdsFiles, ErrorsNameTheShard) {
  put("negative");
  EXPECT_THAT(failure(), AllOf(Names(dir_.path(kShard), "sample 0"), Says("label -3")));
  put("png");
  fs::resize_file(dir_.path(kShard), 100);
  EXPECT_THAT(failure(),
              AllOf(Names(dir_.path(kShard)), Says("100 bytes"), Advises("copy it again")));
  fs::remove(dir_.path(kShard));
  EXPECT_THAT(failure(), Names(dir_.path(kShard), "index.json"));
  write_file(dir_.path("index.json"), "{}");
  EXPECT_THAT(
      open_dataset(spec_of(dir_.path(), "mds"), Split::kTrain, cache_.path()).status().message(),
      AllOf(Names("index.json"), Says("not an index")));
}

// The index is of the shards that index.json named then.
TEST_F(MdsFiles, AnotherIndexIsAnotherDataSet) {
  put("bytes");
  const std::string before = (*open())->fingerprint();
  put("png");
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->samples(), 3U);
  EXPECT_NE((*dataset)->fingerprint(), before);
}

}  // namespace
}  // namespace lockstep::data
