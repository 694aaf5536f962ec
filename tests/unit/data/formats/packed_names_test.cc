// Tests which shards are compressed, of which data set, and what an index says of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/base/split.h"
#include "data/formats/shards/packed_shards.h"
#include "data/formats/shards/tfrecord.h"
#include "data/loader/verify.h"
#include "data/open/detect_format.h"
#include "data/open/index_data.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/unit/data/support/packed_fixture.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(PackedFiles, ALinkToWhatIsNotCompressedIsNothingThatWasMade) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(tar_of_images()));
  write_file(dir_.path("data/b.tar"), tar_of_images(9));
  const auto indexed = index_data(spec_of(dir_.path("data")), cache_, {}, {.frame = kPackedFrame});
  ASSERT_TRUE(indexed.is_ok()) << indexed.status().message();
  for (const auto& file : indexed->made) EXPECT_THAT(file.name, Not(HasSubstr("b.tar")));
  EXPECT_EQ(samples(dir_.path("data")).size(), 8U);
}

// Damage that was compressed with the data.
TEST_F(PackedFiles, ARecordWhoseChecksumIsWrongIsFoundInWhatIsInflated) {
  std::string shard = tfrecord_sample("datasets");
  shard[shard.find("green")] = 'G';
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/a.tfrecord.gz"), gzip_bytes(shard));
  const auto all = verify_data(spec_of(dir_.path("data")), cache_, 2, {}, {}, VerifyDepth::kFull);
  ASSERT_TRUE(all.is_ok()) << all.status().message();
  EXPECT_THAT(all->front().faults,
              ElementsAre(HasSubstr(dir_.path("data/a.tfrecord.gz") +
                                    " (inflated) at byte 384 has a damaged record")));
}

TEST_F(PackedFiles, WhatIsWrongInsideIsSaidOfTheFileThatIsThere) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(tar_entry({"1.jpg", "no image"})));
  EXPECT_THAT(failure(dir_.path("data")),
              StartsWith(dir_.path("data/a.tar.gz") + " (inflated) has 1.jpg, which is no JPEG"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(tar_entry({"../1.jpg", "x"})));
  EXPECT_THAT(failure(dir_.path("data")),
              AllOf(Names("a.tar.gz (inflated)", "byte 0", "../1.jpg"), Says("upwards")));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(std::string(100'000'000, '\0')));
  EXPECT_THAT(failure(dir_.path("data")),
              AllOf(StartsWith(dir_.path("data/a.tar.gz") + " "), Says("200 times")));
  for (const auto& [name, number] : copies()) EXPECT_EQ(name, "a.tar");
}

TEST_F(PackedFiles, TwoThatWouldBeOneFileAreRefused) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(tar_of_images()));
  write_file(dir_.path("data/a.tgz"), gzip_bytes(tar_of_images(9)));
  EXPECT_THAT(failure(dir_.path("data")),
              AllOf(Names("a.tar.gz", "a.tgz", "a.tar"), Advises("leave one")));
}

// The content decides: some servers and browsers unpack on the way and leave the name.
TEST_F(PackedFiles, NamesSayNothingOfWhatIsCompressed) {
  for (const char* name : {"plain.tar", "named.tar.gz", "gzipped.tar", "gzipped.tgz"}) {
    const std::string tar = tar_of_images();
    const bool is_gzipped = std::string(name).starts_with("gzipped");
    write_file(dir_.path(name), is_gzipped ? gzip_bytes(tar) : tar);
    EXPECT_EQ(*detect_format(dir_.path(name)), "webdataset");
    EXPECT_EQ(samples(dir_.path(name)), samples(dir_.path("plain.tar"))) << name;
  }
  const std::string records = tfrecord_sample("datasets");
  write_file(dir_.path("train-00000-of-00001"), gzip_bytes(records));
  write_file(dir_.path("train-00000-of-00002.gz"), gzip_bytes(records));
  write_file(dir_.path("notes-00000-of-00001"), gzip_bytes("these are no records"));
  EXPECT_TRUE(is_tfrecord_file(dir_.path("train-00000-of-00001")));
  EXPECT_TRUE(is_tfrecord_file(dir_.path("train-00000-of-00002.gz")));
  EXPECT_FALSE(is_tfrecord_file(dir_.path("notes-00000-of-00001")));
  EXPECT_EQ(samples(dir_.path("train-00000-of-00001")).size(), 4U);
}

// Files were unpacked from the archive that lies next to them.
TEST_F(PackedFiles, AnArchiveBesideOtherDataIsNotTakenForThem) {
  fs::create_directories(dir_.path("data/pear"));
  write_file(dir_.path("data/flowers.tgz"), gzip_bytes(tar_of_images()));
  EXPECT_EQ(*detect_format(dir_.path("data")), "webdataset");
  write_file(dir_.path("data/pear/1.jpg"), jpeg_picture(20, 20, 1));
  EXPECT_EQ(*detect_format(dir_.path("data")), "image_folder");
  fs::remove_all(dir_.path("data/pear"));
  write_file(dir_.path("data/a.txt"), "text");
  EXPECT_EQ(*detect_format(dir_.path("data")), "text");
}

TEST_F(PackedFiles, SplitsAreToldByNameAsOfPlainOnes) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/train-0.tar.gz"), gzip_bytes(tar_of_images()));
  write_file(dir_.path("data/val-0.tgz"), gzip_bytes(tar_of_images()));
  EXPECT_TRUE(has_eval_files(dir_.path("data")));
  EXPECT_THAT((*open(dir_.path("data")))->name_of(0), HasSubstr("train-0.tar.gz"));
  EXPECT_THAT((*open(dir_.path("data"), Split::kEval))->name_of(0), HasSubstr("val-0.tgz"));
}

class PackedMds : public PackedFiles {
 protected:
  void SetUp() override {
    fs::create_directory(data_);
    index_ = nlohmann::json::parse(mds_sample("compressed/index.json"));
    write_file(data_ + "/shard.00000.mds.zstd", mds_sample("compressed/shard.00000.mds.zstd"));
  }
  nlohmann::json& shard() { return index_["shards"][0]; }
  std::string said() {
    write_file(data_ + "/index.json", index_.dump());
    return failure(data_);
  }
  const std::string data_ = dir_.path("data");
  nlohmann::json index_;
};

TEST_F(PackedMds, OfStreamingsOwnMakingIsRead) {
  EXPECT_EQ(said(), "no failure");
  EXPECT_EQ(samples(data_), (std::vector<SeenSample>{{mds_sample("red_file"), 1}}));
  shard()["compression"] = "zstd:7";
  EXPECT_EQ(said(), "no failure");
}

TEST_F(PackedMds, WhatTheIndexSaysOfItHasToBeSo) {
  shard()["zip_data"]["bytes"] = 357;
  EXPECT_THAT(said(), AllOf(Names("shard.00000.mds.zstd"), Says("356", "357"), Advises("copy")));
  shard()["zip_data"]["bytes"] = 356;
  shard()["raw_data"]["bytes"] = 504;
  EXPECT_THAT(said(), AllOf(Names("mds.zstd"), Says("more than", "504")));
  shard()["raw_data"]["bytes"] = uint64_t{1} << 60;
  EXPECT_THAT(said(), Says("200 times"));
  shard()["raw_data"]["bytes"] = 505;
  shard()["compression"] = "gz";
  EXPECT_THAT(said(), AllOf(Names("mds.zstd"), Says("corrupt")));
  for (const char* other : {"br", "bz2:9", "snappy", ""}) {
    shard()["compression"] = other;
    EXPECT_THAT(said(), AllOf(Names("mds.zstd"), Says("compressed"), Advises("zstd", "gz"),
                              Advises("unpack")));
  }
}

TEST_F(PackedMds, NoNameLeadsOutside) {
  shard()["zip_data"]["basename"] = "../x.zstd";
  EXPECT_THAT(said(), AllOf(Names("../x.zstd"), Says("outside")));
  shard()["zip_data"]["basename"] = 7;
  EXPECT_THAT(said(), Says("compressed", "without the name"));
  // Copies lie next to links to files that are not compressed: no link may be to a directory.
  fs::create_directory(data_ + "/a");
  shard()["zip_data"]["basename"] = "shard.00000.mds.zstd";
  shard()["raw_data"]["basename"] = "a/x.mds";
  index_["shards"].push_back(shard());
  index_["shards"][0]["raw_data"]["basename"] = "a";
  (void)said();
  EXPECT_THAT(said(), HasSubstr(data_ + "/a is not a regular file"));
  EXPECT_TRUE(fs::is_empty(data_ + "/a"));
}

// Another index makes another data set, though the files are the same.
TEST_F(PackedMds, AnotherIndexIsLookedAtAnew) {
  EXPECT_EQ(said(), "no failure");
  shard()["samples"] = 2;
  EXPECT_THAT(said(), AllOf(Names("mds.zstd (inflated)"), Says("damaged", "2 samples")));
}

}  // namespace
}  // namespace lockstep::data
