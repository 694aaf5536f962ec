#include "data/source/cache/disk_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/base/hash.h"
#include "data/source/cache/chunk_file.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/source/fake_store.h"

namespace lockstep::source {
namespace {

std::string id_of(int i) {
  const std::string text = std::to_string(i);
  return xxh3_hex(text.data(), text.size());
}

class ChunksOnDisk : public testing::Test {
 protected:
  CacheOptions options(uint64_t limit = 0, CachePolicy policy = CachePolicy::kPin) {
    CacheOptions options;
    options.limit_bytes = limit;
    options.policy = policy;
    options.keep_free_share = 0;
    return options;
  }
  static bool store(DiskCache& cache, int i, size_t bytes = 1000) {
    return cache.store(id_of(i), as_bytes(some_bytes(bytes, static_cast<uint32_t>(i))));
  }
  static bool holds(DiskCache& cache, int i, size_t bytes = 1000) {
    std::string got(bytes, 'x');
    if (!cache.read(id_of(i), 0, bytes, reinterpret_cast<uint8_t*>(got.data()))) return false;
    EXPECT_EQ(got, some_bytes(bytes, static_cast<uint32_t>(i)));
    return true;
  }
  std::string path_of(int i) {
    return dir_.path("c") + "/" + id_of(i).substr(0, 2) + "/" + id_of(i);
  }

  TemporaryDirectory dir_;
};

TEST_F(ChunksOnDisk, GiveBackAnyPartOfWhatWasStored) {
  const std::string content = some_bytes(300'000);
  DiskCache cache(dir_.path("c"), options());
  ASSERT_TRUE(cache.store(id_of(1), as_bytes(content)));
  for (const auto& [offset, bytes] :
       {std::pair{0, 300'000}, {65'535, 2}, {65'536, 65'536}, {299'999, 1}, {100, 200'000}}) {
    std::string got(static_cast<size_t>(bytes), 'x');
    ASSERT_TRUE(cache.read(id_of(1), static_cast<uint64_t>(offset), got.size(),
                           reinterpret_cast<uint8_t*>(got.data())));
    EXPECT_EQ(got, content.substr(static_cast<size_t>(offset), got.size()));
  }
  uint8_t byte = 0;
  EXPECT_FALSE(cache.read(id_of(1), 300'000, 1, &byte));
  EXPECT_FALSE(cache.read(id_of(2), 0, 1, &byte));
}

TEST_F(ChunksOnDisk, ADamagedOneIsAMissAndIsTakenAway) {
  DiskCache cache(dir_.path("c"), options());
  ASSERT_TRUE(store(cache, 1));
  const std::string good = slurp(path_of(1));
  for (size_t i = 0; i < good.size(); i += 13) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(path_of(1), std::ios::binary) << damaged;
    EXPECT_FALSE(holds(cache, 1)) << "byte " << i;
    EXPECT_FALSE(std::filesystem::exists(path_of(1)));
  }
  std::ofstream(path_of(1), std::ios::binary) << good.substr(0, good.size() / 2);
  EXPECT_FALSE(holds(cache, 1));
  std::filesystem::create_directories(dir_.path("c") + "/" + id_of(2).substr(0, 2));
  std::ofstream(path_of(2), std::ios::binary) << good;  // a good chunk, of another id
  EXPECT_FALSE(holds(cache, 2));
}

TEST_F(ChunksOnDisk, PinnedOnesStayAndTheLimitHolds) {
  const uint64_t each = chunk_file_bytes(1000);
  DiskCache cache(dir_.path("c"), options(3 * each));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(store(cache, i));
  EXPECT_FALSE(cache.has_room(1000));
  EXPECT_FALSE(store(cache, 3));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(holds(cache, i));
  EXPECT_EQ(cache.bytes(), 3 * each);
}

TEST_F(ChunksOnDisk, LruKeepsWhatIsUsedAndFifoWhatCameLast) {
  const uint64_t each = chunk_file_bytes(1000);
  for (const CachePolicy policy : {CachePolicy::kLru, CachePolicy::kFifo}) {
    DiskCache cache(dir_.path("c"), options(3 * each, policy));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(store(cache, i));
    EXPECT_TRUE(holds(cache, 0));
    EXPECT_TRUE(store(cache, 3));
    EXPECT_EQ(holds(cache, 0), policy == CachePolicy::kLru);
    EXPECT_EQ(holds(cache, 1), policy == CachePolicy::kFifo);
    EXPECT_TRUE(holds(cache, 3));
    EXPECT_LE(cache.bytes(), 3 * each);
    std::filesystem::remove_all(dir_.path("c"));
  }
}

TEST_F(ChunksOnDisk, WhatAProcessKeepsAnotherOneHas) {
  DiskCache ours(dir_.path("c"), options());
  const pid_t child = ::fork();
  if (child == 0) {
    DiskCache theirs(dir_.path("c"), options());
    ::_exit(store(theirs, 1) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(holds(ours, 1));
  EXPECT_EQ(ours.bytes(), chunk_file_bytes(1000));
}

TEST_F(ChunksOnDisk, AWriterThatIsKilledLeavesNothingThatCountsOrIsTakenForAChunk) {
  const pid_t child = ::fork();
  if (child == 0) {
    DiskCache theirs(dir_.path("c"), options());
    for (int i = 0;; i = (i + 1) % 4) {
      std::filesystem::remove(path_of(i));
      (void)store(theirs, i, 3'000'000);
    }
  }
  // Somewhere in the middle of it: as soon as a part is seen.
  const auto has_part = [&] {
    std::error_code ignored;
    for (std::filesystem::recursive_directory_iterator it(dir_.path("c"), ignored), end;
         !ignored && it != end; it.increment(ignored))
      if (it->path().native().ends_with(kPartEnding)) return true;
    return false;
  };
  while (!has_part()) {
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  DiskCache cache(dir_.path("c"), options());
  uint64_t whole = 0;
  for (int i = 0; i < 4; ++i) {
    if (holds(cache, i, 3'000'000)) ++whole;
    EXPECT_TRUE(store(cache, i, 3'000'000));  // over what was left
    EXPECT_TRUE(holds(cache, i, 3'000'000));
  }
  EXPECT_EQ(cache.bytes(), 4 * chunk_file_bytes(3'000'000));
  EXPECT_LE(whole, 4U);
}

TEST_F(ChunksOnDisk, AFullDiskIsNoError) {
  const std::string disk = dir_.path("small");
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "no file system can be mounted here: is this not root?";
  {
    DiskCache cache(disk + "/c", options());
    int kept = 0;
    while (kept < 100 && store(cache, kept, 50'000)) ++kept;
    EXPECT_GT(kept, 1);
    EXPECT_LT(kept, 6);
    for (int i = 0; i < kept; ++i) EXPECT_TRUE(holds(cache, i, 50'000));
    EXPECT_FALSE(holds(cache, kept, 50'000));
    DiskCache moving(disk + "/c", options(0, CachePolicy::kLru));
    EXPECT_TRUE(store(moving, 50, 50'000));  // the oldest makes room
    EXPECT_FALSE(holds(moving, 0, 50'000));
  }
  ::umount(disk.c_str());
}

TEST_F(ChunksOnDisk, ADirectoryThatCannotBeMadeKeepsNothing) {
  std::ofstream(dir_.path("file")) << "x";
  DiskCache cache(dir_.path("file") + "/c", options());
  EXPECT_FALSE(cache.has_room(1));
  EXPECT_NE(cache.why_disk_keeps_nothing().find("cannot make"), std::string::npos);
  EXPECT_FALSE(store(cache, 1));
  EXPECT_FALSE(holds(cache, 1));
  EXPECT_NE(cache.lock(id_of(1)), nullptr);
}

TEST_F(ChunksOnDisk, SomeOfTheDiskIsLeftFree) {
  CacheOptions all = options();
  all.keep_free_share = 1;
  DiskCache cache(dir_.path("c"), all);
  EXPECT_FALSE(store(cache, 1));
  EXPECT_NE(cache.why_disk_keeps_nothing().find("data.cache.limit_gb"), std::string::npos);
}

TEST_F(ChunksOnDisk, WithALimitLessOfTheDiskIsLeftFree) {
  CacheOptions limited = options(1'000'000);
  limited.keep_free_share = 1;
  limited.keep_free_bytes = 0;
  DiskCache cache(dir_.path("c"), limited);
  EXPECT_EQ(cache.why_disk_keeps_nothing(), "");
  EXPECT_TRUE(store(cache, 1));
  EXPECT_TRUE(holds(cache, 1));
  limited.keep_free_bytes = uint64_t{1} << 62;  // more than the disk has
  DiskCache careful(dir_.path("c"), limited);
  EXPECT_FALSE(store(careful, 2));
  EXPECT_NE(careful.why_disk_keeps_nothing(), "");
}

}  // namespace
}  // namespace lockstep::source
