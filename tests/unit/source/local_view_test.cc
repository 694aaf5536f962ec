#include "data/source/far_files/local_view.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <set>

#include "data/source/far_files/remote_files.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/source/fake_store.h"

namespace lockstep::source {
namespace {

class LocalView : public testing::Test {
 protected:
  LocalView() : disk_(dir_.path("c"), options_), cache_(store_, disk_, options_, stop_) {}
  Status update() {
    const auto objects = *store_.list();
    return update_view(view_, objects, fetching_of(objects), cache_, 4, {});
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(view_))
      found.insert(entry.path().native().substr(view_.size() + 1));
    return found;
  }
  struct stat stat_of(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::stat((view_ + "/" + name).c_str(), &info), 0) << name;
    return info;
  }

  TemporaryDirectory dir_;
  const std::string view_ = dir_.path("remote/view");
  FakeStore store_;
  CacheOptions options_{.keep_free_share = 0, .attempts = 1};
  std::atomic<bool> stop_{false};
  DiskCache disk_;
  ObjectCache cache_;
};

TEST_F(LocalView, FilesThatAreReadWholeAreThereAndOfShardsOnlyPlaces) {
  store_.objects = {
      {"train/a.tar", some_bytes(100'000)}, {"train/index.json", "{}"}, {"notes.txt", "x"}};
  ASSERT_TRUE(update().is_ok());
  EXPECT_EQ(names(), (std::set<std::string>{"train", "train/a.tar", "train/index.json"}));
  EXPECT_EQ(slurp(view_ + "/train/index.json"), "{}");
  EXPECT_EQ(stat_of("train/a.tar").st_size, 100'000);
  EXPECT_EQ(stat_of("train/a.tar").st_blocks, 0);
  EXPECT_EQ(store_.bytes, 2U);
}

TEST_F(LocalView, FormatsThatTheFirstBytesTellHaveThese) {
  store_.objects = {{"a.tfrecord", some_bytes(100'000)}};
  ASSERT_TRUE(update().is_ok());
  EXPECT_EQ(slurp(view_ + "/a.tfrecord").substr(0, 4096), some_bytes(100'000).substr(0, 4096));
}

TEST_F(LocalView, IsTheSameAfterASecondLookAndFollowsTheSource) {
  store_.objects = {{"x/a.bin", "aaaa"}, {"b.bin", "bbbb"}};
  ASSERT_TRUE(update().is_ok());
  const struct stat file = stat_of("x/a.bin");
  const struct stat directory = stat_of("x");
  ASSERT_TRUE(update().is_ok());
  EXPECT_EQ(store_.reads, 2U);
  EXPECT_EQ(stat_of("x/a.bin").st_ino, file.st_ino);
  EXPECT_EQ(stat_of("x").st_mtim.tv_nsec, directory.st_mtim.tv_nsec);
  store_.version = "v2";
  store_.objects = {{"x/a.bin", "cccc"}, {"d", "d"}};
  ASSERT_TRUE(update().is_ok());
  EXPECT_EQ(names(), (std::set<std::string>{"x", "x/a.bin", "d"}));
  EXPECT_EQ(slurp(view_ + "/x/a.bin"), "cccc");
  EXPECT_NE(stat_of("x/a.bin").st_mtim.tv_nsec, file.st_mtim.tv_nsec);
  EXPECT_NE(stat_of("x").st_mtim.tv_nsec, directory.st_mtim.tv_nsec);
}

TEST_F(LocalView, WhatIsLeftOfAnInterruptedOneIsUsedAndNothingHalfIsShown) {
  store_.objects = {{"a.bin", some_bytes(9'000'000)}};
  std::atomic<int> left{1};
  store_.before_read = [&] {
    return left-- > 0 ? Status::ok() : Status(Code::kUnavailable, "down");
  };
  EXPECT_EQ(update().code(), Code::kNoInput);
  EXPECT_TRUE(names().empty());
  store_.before_read = [] { return Status::ok(); };
  ASSERT_TRUE(update().is_ok());
  EXPECT_EQ(slurp(view_ + "/a.bin"), some_bytes(9'000'000));
  EXPECT_EQ(store_.bytes, 9'000'000U);
}

TEST(RemoteFiles, AMountIsReadThroughTheCacheAndAFileThatChangesIsTold) {
  const TemporaryDirectory dir;
  std::filesystem::create_directories(dir.path("mount/x"));
  std::ofstream(dir.path("mount/x/a.tar")) << some_bytes(1000);
  const CacheOptions options{.covers_paths = true, .keep_free_share = 0, .attempts = 1};
  const auto files = RemoteFiles::open(dir.path("mount"), dir.path("cache"), options, {});
  ASSERT_TRUE(files.is_ok()) << files.status().message();
  const std::string path = (*files)->path() + "/x/a.tar";
  EXPECT_TRUE((*files)->has_only_place(path));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  const FileStamp then{1000, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
  std::string got(500, 'x');
  auto* out = reinterpret_cast<uint8_t*>(got.data());
  ASSERT_TRUE((*files)->read(path, then, 250, 500, out).is_ok());
  EXPECT_EQ(got, some_bytes(1000).substr(250, 500));
  const auto copy = (*files)->copy_of(path);
  ASSERT_TRUE(copy.is_ok());
  EXPECT_EQ(slurp(*copy), some_bytes(1000));
  EXPECT_EQ((*files)->read(path, {1000, 5}, 0, 1, out).code(), Code::kBadData);
  EXPECT_EQ((*files)->read(path, then, 900, 101, out).code(), Code::kBadData);

  std::ofstream(dir.path("mount/x/a.tar")) << some_bytes(1000, 2);
  std::filesystem::remove_all(dir.path("cache/objects"));
  const Status changed = (*files)->read(path, then, 0, 1, out);
  EXPECT_THAT(changed, FailsWith(Code::kBadData, Names("x/a.tar", dir.path("mount"))));
}

TEST(RemoteFiles, NeedAPlaceToKeepThem) {
  EXPECT_EQ(RemoteFiles::open("http://127.0.0.1:1/x", "", {}, {}).status().code(), Code::kUsage);
  EXPECT_TRUE(is_far("s3://b", {}));
  EXPECT_FALSE(is_far("/data", {}));
}

}  // namespace
}  // namespace lockstep::source
