// Shards that are compressed as a whole: the same data as the files that they inflate to.
#include "data/formats/shards/packed_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/loader/verify.h"
#include "data/open/detect_format.h"
#include "data/open/index_data.h"
#include "data/open/open_dataset.h"
#include "tests/support/files.h"
#include "tests/unit/data/support/packed_fixture.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

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

// Otherwise every worker would read all of a large data set before it begins.
TEST_P(Packed, CopiesAreReadWholeOnceOnly) {
  const std::string before = fingerprint(packed_);
  const auto note = [&] {  // a process that reads them whole writes another file
    struct stat info {};
    for (const auto& entry : fs::directory_iterator(cache_))
      if (entry.path().extension() == ".checked") ::stat(entry.path().c_str(), &info);
    return info.st_ino;
  };
  const ino_t first = note();
  EXPECT_NE(first, 0U);
  EXPECT_EQ(fingerprint(packed_), before);
  EXPECT_EQ(note(), first) << "somebody looked";
  // A copy that was rewritten is read whole again, though it has its old size and time.
  const std::string copy = copy_of(GetParam().plain_victim).string();
  const std::string good = slurp(copy);
  write_and_put_time_back(copy, static_cast<off_t>(good.size()) - 1,
                          static_cast<char>(good.back() ^ 1));  // of its checksum
  EXPECT_EQ(fingerprint(packed_), before);
  EXPECT_EQ(slurp(copy), good);
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
                           later.is_ok() && read_encoded(**dataset, 0, bytes).is_ok();
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
  const auto dataset =
      open_dataset(spec_of(packed_), Split::kTrain, "", {}, {.frame = kPackedFrame});
  EXPECT_EQ(dataset.status().code(), Code::kUsage);
  EXPECT_THAT(dataset.status().message(), AllOf(HasSubstr(victim()), HasSubstr("data.cache_dir")));
}

// A file next to it that is not compressed is read where it lies.
TEST_P(Packed, SomeMayBeCompressedAndSomeNot) {
  GetParam().put(packed_, false, 0);  // the same, inflated, next to the compressed files
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
  const auto first = index_data(spec_of(packed_), cache_, {}, {.frame = kPackedFrame});
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_THAT(names(first->made), testing::Contains(HasSubstr("/" + GetParam().plain_victim)));
  const auto again = index_data(spec_of(packed_), cache_, {}, {.frame = kPackedFrame});
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

}  // namespace
}  // namespace lockstep::data
