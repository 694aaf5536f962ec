// Shards that are compressed as a whole: the same data as the files that they inflate to.
#include "data/index/packed_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "data/index/dataset.h"
#include "data/index/detect_format.h"
#include "data/index/index_data.h"
#include "data/index/tfrecord.h"
#include "data/read/verify.h"
#include "tests/unit/data/packed_files.h"
#include "tests/unit/data/shard_checks.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr ImageFrame kSmall{CropKind::kRandomResized, 4, 0};

class PackedFiles : public testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> open(const std::string& path, Split split = Split::kTrain) {
    return open_dataset(spec_of(path), split, cache_, {}, {.frame = kSmall});
  }
  std::string failure(const std::string& path) {
    const auto dataset = open(path);
    if (dataset.is_ok()) return "no failure";
    EXPECT_EQ(dataset.status().code(), Code::kBadData) << dataset.status().message();
    return dataset.status().message();
  }
  std::vector<SeenSample> samples(const std::string& path) {
    const auto dataset = open(path);
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    std::vector<SeenSample> seen;
    for (uint64_t i = 0; dataset.is_ok() && i < (*dataset)->samples(); ++i) {
      std::vector<uint8_t> bytes;
      EXPECT_TRUE((*dataset)->read_encoded(i, bytes).is_ok());
      seen.push_back({{bytes.begin(), bytes.end()}, (*dataset)->label(i)});
    }
    return seen;
  }
  std::string fingerprint(const std::string& path) {
    const auto dataset = open(path);
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    return dataset.is_ok() ? (*dataset)->fingerprint() : "none";
  }
  // Files of the cache that are copies of shards, or begin to be: their numbers by their names.
  std::map<std::string, ino_t> copies() const {
    std::map<std::string, ino_t> found;
    std::error_code error;
    for (fs::recursive_directory_iterator it(cache_, error), end; !error && it != end; ++it) {
      struct stat info {};
      const std::string path = it->path().string();
      const bool is_file = ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
      if (is_file && path.find("/shards.") < path.rfind('/'))
        found[it->path().filename().string()] = info.st_ino;
    }
    return found;
  }

  fs::path copy_of(const std::string& name) const {
    for (const auto& entry : fs::recursive_directory_iterator(cache_))
      if (entry.path().filename() == name) return entry.path();
    return {};
  }

  TemporaryDirectory dir_;
  const std::string cache_ = dir_.path("cache");
};

class Packed : public PackedFiles, public testing::WithParamInterface<PackedFormat> {
 protected:
  void SetUp() override {
    fs::create_directory(plain_);
    fs::create_directory(packed_);
    GetParam().put(plain_, /*is_packed=*/false, 0);
    GetParam().put(packed_, /*is_packed=*/true, 0);
  }
  std::string victim() const { return packed_ + "/" + GetParam().victim; }

  const std::string plain_ = dir_.path("plain");
  const std::string packed_ = dir_.path("packed");
};

INSTANTIATE_TEST_SUITE_P(, Packed, testing::ValuesIn(packed_formats()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(Packed, IsTheSameDataAsWhatItInflatesTo) {
  EXPECT_EQ(*detect_format(packed_), GetParam().format);
  EXPECT_EQ(samples(packed_), samples(plain_));
  EXPECT_FALSE(samples(packed_).empty());
  EXPECT_EQ(fingerprint(packed_), fingerprint(plain_));
  const auto dataset = open(packed_);
  EXPECT_EQ((*dataset)->statistics(), (*open(plain_))->statistics());
  EXPECT_THAT((*dataset)->name_of(0), StartsWith(victim() + " (inflated) at byte "));
  EXPECT_THAT((*dataset)->files(), ElementsAre(packed_));
}

TEST_P(Packed, IsInflatedOnce) {
  const std::string before = fingerprint(packed_);
  const auto made = copies();
  EXPECT_FALSE(made.empty());
  EXPECT_EQ(fingerprint(packed_), before);
  EXPECT_EQ(copies(), made);
}

// Or every worker would read all of a large data set before it begins.
TEST_P(Packed, CopiesAreReadWholeOnceOnly) {
  const std::string before = fingerprint(packed_);
  const fs::path copy = copy_of(GetParam().plain_victim);
  const auto modified = fs::last_write_time(copy);
  std::string content = slurp(copy.string());
  content.back() ^= 1;  // of its checksum
  const auto put = [&] {
    std::fstream(copy, std::ios::in | std::ios::out | std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    fs::last_write_time(copy, modified);
  };
  put();
  EXPECT_EQ(fingerprint(packed_), before);
  EXPECT_EQ(slurp(copy.string()), content) << "nobody looked";
  // Of a source with another time they are.
  fs::last_write_time(victim(), modified + std::chrono::seconds(1));
  EXPECT_EQ(fingerprint(packed_), before);
  EXPECT_NE(slurp(copy.string()), content);
}

TEST_P(Packed, WhatIsTruncatedIsRefusedByNameAndLeavesNothing) {
  const std::string good = slurp(victim());
  for (const size_t bytes : {good.size() - 1, good.size() / 2, size_t{40}}) {
    write_file(victim(), good.substr(0, bytes));
    EXPECT_THAT(failure(packed_), StartsWith(victim() + " ")) << bytes;
    const fs::path name = GetParam().plain_victim;
    for (const auto& [copy, number] : copies())
      EXPECT_FALSE(copy.starts_with(name.string())) << copy << " of " << bytes;
  }
}

TEST_P(Packed, WhatIsDamagedIsRefusedByNameOrTheSame) {
  const std::string good = slurp(victim());
  const std::string before = fingerprint(plain_);
  int refused = 0;
  for (size_t at = 4; at < good.size(); at += good.size() / 40) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file(victim(), damaged);
    const auto dataset = open(packed_);
    if (!dataset.is_ok()) ++refused;
    if (dataset.is_ok()) {
      EXPECT_EQ((*dataset)->fingerprint(), before) << at;
    } else {
      EXPECT_THAT(dataset.status().message(), StartsWith(victim() + " ")) << at;
    }
  }
  EXPECT_GT(refused, 30);
}

TEST_P(Packed, WhatIsReplacedIsInflatedAnew) {
  const std::string before = fingerprint(packed_);
  GetParam().put(plain_, false, 1);
  GetParam().put(packed_, true, 1);
  EXPECT_NE(fingerprint(packed_), before);
  EXPECT_EQ(fingerprint(packed_), fingerprint(plain_));
  EXPECT_EQ(samples(packed_), samples(plain_));
}

TEST_P(Packed, ACopyThatWasDamagedIsMadeAnew) {
  const std::string before = fingerprint(packed_);
  const auto made = copies();
  for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
    if (!made.contains(entry.path().filename().string())) continue;
    std::string content = slurp(entry.path().string());
    content[content.size() / 2] ^= 1;
    write_file(entry.path().string(), content);
  }
  EXPECT_EQ(fingerprint(packed_), before);
  for (const auto& [name, number] : copies()) EXPECT_NE(number, made.at(name)) << name;
}

TEST_P(Packed, ManyProcessesMayOpenItAtOnce) {
  const std::string wanted = fingerprint(plain_);
  fs::remove_all(cache_);
  int start[2];
  ASSERT_EQ(::pipe(start), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 12; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      char byte = 0;
      ::close(start[1]);
      (void)!::read(start[0], &byte, 1);  // until all are there
      const auto dataset = open(packed_);
      const auto later = open(packed_);
      std::vector<uint8_t> bytes;
      const bool is_good = dataset.is_ok() && (*dataset)->fingerprint() == wanted &&
                           later.is_ok() && (*dataset)->read_encoded(0, bytes).is_ok();
      _exit(is_good ? 0 : 1);
    }
    children.push_back(child);
  }
  ::close(start[0]);
  ::close(start[1]);
  for (const pid_t child : children) {
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
  }
}

TEST_P(Packed, IsRefusedWithoutACache) {
  const auto dataset = open_dataset(spec_of(packed_), Split::kTrain, "", {}, {.frame = kSmall});
  EXPECT_EQ(dataset.status().code(), Code::kUsage);
  EXPECT_THAT(dataset.status().message(), AllOf(HasSubstr(victim()), HasSubstr("data.cache_dir")));
}

// What is beside it and not compressed is read where it lies.
TEST_P(Packed, SomeMayBeCompressedAndSomeNot) {
  GetParam().put(packed_, false, 0);  // the same, inflated, beside what is not
  EXPECT_EQ(fingerprint(packed_), fingerprint(plain_));
  EXPECT_TRUE(copies().empty()) << "nothing is inflated that lies there inflated";
  fs::remove(packed_ + "/" + GetParam().plain_victim);
  EXPECT_EQ(fingerprint(packed_), fingerprint(plain_));
  EXPECT_EQ(samples(packed_), samples(plain_));
  const auto made = copies();
  EXPECT_EQ(made.size(), 1U);
  EXPECT_TRUE(made.contains(GetParam().plain_victim));
}

TEST_P(Packed, MadeAheadItIsThereForTheRun) {
  const auto names = [](const std::vector<IndexedData::File>& files) {
    std::vector<std::string> found;
    for (const auto& file : files) found.push_back(file.name);
    return found;
  };
  const auto first = index_data(spec_of(packed_), cache_, {}, {.frame = kSmall});
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_THAT(names(first->made), testing::Contains(HasSubstr("/" + GetParam().plain_victim)));
  const auto again = index_data(spec_of(packed_), cache_, {}, {.frame = kSmall});
  EXPECT_THAT(names(again->made), IsEmpty());
  EXPECT_EQ(names(again->kept), names(first->made));
}

TEST_P(Packed, IsVerifiedInFull) {
  for (const std::string& path : {plain_, packed_}) {
    const auto all = verify_data(spec_of(path), cache_, 2, {}, {}, VerifyDepth::kFull);
    ASSERT_TRUE(all.is_ok()) << all.status().message();
    EXPECT_EQ(all->front().damaged, 0U);
    EXPECT_EQ(all->front().samples, samples(plain_).size());
  }
}

TEST_F(PackedFiles, ALinkToWhatIsNotCompressedIsNothingThatWasMade) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(tar_of_images()));
  write_file(dir_.path("data/b.tar"), tar_of_images(9));
  const auto indexed = index_data(spec_of(dir_.path("data")), cache_, {}, {.frame = kSmall});
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
                                    " (inflated) at byte 384 has a record whose checksum")));
}

TEST_F(PackedFiles, WhatIsWrongInsideIsSaidOfTheFileThatIsThere) {
  fs::create_directory(dir_.path("data"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(tar_entry({"1.jpg", "no image"})));
  EXPECT_THAT(failure(dir_.path("data")),
              StartsWith(dir_.path("data/a.tar.gz") + " (inflated) has 1.jpg, which is neither"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(tar_entry({"../1.jpg", "x"})));
  EXPECT_THAT(failure(dir_.path("data")),
              HasSubstr("a.tar.gz (inflated) has a file at byte 0 whose "
                        "name leads upwards, ../1.jpg"));
  write_file(dir_.path("data/a.tar.gz"), gzip_bytes(std::string(100'000'000, '\0')));
  EXPECT_THAT(failure(dir_.path("data")), AllOf(StartsWith(dir_.path("data/a.tar.gz") + " "),
                                                HasSubstr("more than 200 times its size")));
  for (const auto& [name, number] : copies()) EXPECT_EQ(name, "a.tar");
}

// By content: some servers and browsers unpack on the way and leave the name.
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

// An archive beside files is what they were unpacked from.
TEST_F(PackedFiles, AnArchiveBesideOtherDataIsNotTakenForThem) {
  fs::create_directories(dir_.path("data/pear"));
  write_file(dir_.path("data/flowers.tgz"), gzip_bytes(tar_of_images()));
  EXPECT_EQ(*detect_format(dir_.path("data")), "webdataset");
  write_file(dir_.path("data/pear/1.jpg"), jpeg_picture(20, 20, 1));
  EXPECT_EQ(*detect_format(dir_.path("data")), "image_folder");
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
  EXPECT_THAT(said(),
              HasSubstr("shard.00000.mds.zstd has 356 bytes, and the index says 357; copy"));
  shard()["zip_data"]["bytes"] = 356;
  shard()["raw_data"]["bytes"] = 504;
  EXPECT_THAT(said(),
              HasSubstr("mds.zstd inflates to more than the 504 bytes that the index says"));
  shard()["raw_data"]["bytes"] = uint64_t{1} << 60;
  EXPECT_THAT(said(), HasSubstr("more than 200 times its size"));
  shard()["raw_data"]["bytes"] = 505;
  shard()["compression"] = "gz";
  EXPECT_THAT(said(), HasSubstr("mds.zstd is corrupt"));
  for (const char* other : {"br", "bz2:9", "snappy", ""}) {
    shard()["compression"] = other;
    EXPECT_THAT(said(), AllOf(HasSubstr("mds.zstd is compressed as a whole by"),
                              HasSubstr("only zstd and gz"), HasSubstr("unpack the shards")));
  }
}

TEST_F(PackedMds, NoNameLeadsOutside) {
  shard()["zip_data"]["basename"] = "../x.zstd";
  EXPECT_THAT(said(), HasSubstr("../x.zstd, which lies outside its directory"));
  shard()["zip_data"]["basename"] = 7;
  EXPECT_THAT(said(), HasSubstr("compressed, without the name of that file"));
  // Copies are made beside links to what is not compressed: no link may be to a directory.
  fs::create_directory(data_ + "/a");
  shard()["zip_data"]["basename"] = "shard.00000.mds.zstd";
  shard()["raw_data"]["basename"] = "a/x.mds";
  index_["shards"].push_back(shard());
  index_["shards"][0]["raw_data"]["basename"] = "a";
  (void)said();
  EXPECT_THAT(said(), HasSubstr(data_ + "/a is no file"));
  EXPECT_TRUE(fs::is_empty(data_ + "/a"));
}

// Another index is of another data set, though the files are the same.
TEST_F(PackedMds, AnotherIndexIsLookedAtAnew) {
  EXPECT_EQ(said(), "no failure");
  shard()["samples"] = 2;
  EXPECT_THAT(said(), HasSubstr("mds.zstd (inflated) is damaged: it does not hold the 2 samples"));
}

}  // namespace
}  // namespace lockstep::data
