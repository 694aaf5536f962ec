#include "data/source/cache/object_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "data/source/cache/fetch_queue.h"
#include "data/source/far_files/download.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/source/fake_store.h"

namespace lockstep::source {
namespace {

constexpr uint64_t kChunk = 64 * 1024;

class Reader : public testing::Test {
 protected:
  Reader() {
    options_.chunk_bytes = kChunk;
    options_.keep_free_share = 0;
    options_.attempts = 2;
    store_.objects["a"] = content_;
  }
  void open() {
    cache_.reset();
    disk_ = std::make_unique<DiskCache>(dir_.path("c"), options_);
    cache_ = std::make_unique<ObjectCache>(store_, *disk_, options_, stop_);
  }
  ObjectInfo object() const { return {"a", content_.size(), store_.version}; }
  // Reads it and compares.
  Status read(uint64_t offset, uint64_t bytes) {
    std::string got(bytes, 'x');
    Status status = cache_->read(object(), offset, bytes, reinterpret_cast<uint8_t*>(got.data()));
    if (status.is_ok()) {
      EXPECT_EQ(got, content_.substr(offset, bytes));
    }
    return status;
  }

  TemporaryDirectory dir_;
  FakeStore store_;
  std::string content_ = some_bytes(3 * kChunk + 1000);
  CacheOptions options_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<DiskCache> disk_;
  std::unique_ptr<ObjectCache> cache_;
};

TEST_F(Reader, FetchesAChunkOnceAndHasItAfterARestart) {
  open();
  EXPECT_TRUE(read(10, 100).is_ok());
  EXPECT_TRUE(read(200, 100).is_ok());
  EXPECT_EQ(store_.reads, 1U);
  EXPECT_EQ(store_.bytes, kChunk);
  open();
  EXPECT_TRUE(read(0, kChunk).is_ok());
  EXPECT_EQ(store_.reads, 1U);
  EXPECT_TRUE(read(0, content_.size()).is_ok());  // over all chunks, the last a short one
  EXPECT_EQ(store_.bytes, content_.size());
  EXPECT_EQ(cache_->counts().hits, 2U);
  EXPECT_EQ(cache_->counts().misses, 3U);
}

TEST_F(Reader, AnotherVersionOfAnObjectIsAnotherObject) {
  open();
  EXPECT_TRUE(read(0, 100).is_ok());
  store_.version = "v2";
  content_ = store_.objects["a"] = some_bytes(content_.size(), 7);
  EXPECT_TRUE(read(0, 100).is_ok());
  EXPECT_EQ(store_.reads, 2U);
}

TEST_F(Reader, WithoutRoomOnTheDiskJustWhatIsWantedIsFetched) {
  options_.limit_bytes = 1;
  open();
  EXPECT_TRUE(read(10, 100).is_ok());
  EXPECT_TRUE(read(10, 100).is_ok());
  EXPECT_EQ(store_.bytes, 200U);
}

TEST_F(Reader, WhatWasFetchedAheadIsInMemoryWhereTheDiskHasNoRoom) {
  options_.limit_bytes = 1;
  open();
  cache_->fetch_ahead(object(), kChunk - 50, 100);  // of two chunks
  EXPECT_EQ(store_.bytes, 100U);
  EXPECT_TRUE(read(kChunk - 50, 100).is_ok());
  EXPECT_EQ(store_.bytes, 100U);
  EXPECT_EQ(cache_->counts().hits, 2U);
}

TEST_F(Reader, MemoryHoldsNoMoreThanItsLimit) {
  MemoryTier memory(250);
  for (int i = 0; i < 4; ++i) memory.put(std::to_string(i), std::vector<uint8_t>(100));
  EXPECT_EQ(memory.bytes(), 200U);
  EXPECT_FALSE(memory.has("1"));
  EXPECT_TRUE(memory.has("3"));
  memory.put("large", std::vector<uint8_t>(251));
  EXPECT_FALSE(memory.has("large"));
}

TEST_F(Reader, ThreadsThatWantTheSameFetchItOnce) {
  open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] { EXPECT_TRUE(read(0, content_.size()).is_ok()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_.bytes, content_.size());
}

TEST_F(Reader, ProcessesThatWantTheSameFetchItOnce) {
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    children.push_back(::fork());
    if (children.back() > 0) continue;
    // Each fetch leaves a byte in a file that all append to.
    store_.before_read = [&] {
      std::ofstream(dir_.path("fetches"), std::ios::app) << "." << std::flush;
      return Status::ok();
    };
    open();
    const bool is_good = read(0, content_.size()).is_ok();
    ::_exit(is_good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(slurp(dir_.path("fetches")), "....");  // one a chunk
}

TEST_F(Reader, ASourceThatFailsOnceIsAskedAgainAndOneThatFailsIsNamed) {
  open();
  int failures = 1;
  store_.before_read = [&] {
    return failures-- > 0 ? Status(Code::kUnavailable, "the server answers 500") : Status::ok();
  };
  EXPECT_TRUE(read(0, 10).is_ok());
  failures = 1000;
  const Status status = read(kChunk, 10);
  EXPECT_THAT(status, FailsWith(Code::kNoInput, Names("a of test://store")));
  failures = 0;
  EXPECT_TRUE(read(kChunk, 10).is_ok());
}

TEST_F(Reader, AnnouncedRangesAreThereWhenTheyAreRead) {
  open();
  const ObjectInfo all = object();
  {
    FetchQueue ahead(*cache_, 3);
    for (uint64_t at = 0; at + 500 <= content_.size(); at += 500) ahead.announce(all, at, 500);
    while (store_.bytes < content_.size()) std::this_thread::yield();
  }
  EXPECT_TRUE(read(0, content_.size()).is_ok());
  EXPECT_EQ(store_.bytes, content_.size());
  EXPECT_EQ(cache_->counts().misses, 0U);
}

TEST_F(Reader, ADownloadGoesOnWhereItWasBrokenOff) {
  content_ = store_.objects["a"] = some_bytes(9'000'000);
  open();
  std::atomic<int> left{2};
  store_.before_read = [&] {
    return left-- > 0 ? Status::ok() : Status(Code::kUnavailable, "cut off");
  };
  const auto ignore = [](uint64_t) {};
  const auto read = [&](uint64_t offset, uint64_t bytes, uint8_t* out) {
    return cache_->read_once(object(), offset, bytes, out);
  };
  EXPECT_EQ(download(object(), read, 1, dir_.path("file"), ignore).code(), Code::kNoInput);
  EXPECT_FALSE(std::filesystem::exists(dir_.path("file")));
  store_.before_read = [] { return Status::ok(); };
  EXPECT_TRUE(download(object(), read, 4, dir_.path("file"), ignore).is_ok());
  EXPECT_EQ(slurp(dir_.path("file")), content_);
  EXPECT_EQ(store_.bytes, content_.size());  // nothing twice
  EXPECT_FALSE(std::filesystem::exists(dir_.path("file.pieces")));
}

TEST_F(Reader, ADownloadRemovesThePiecesThatItsFileHas) {
  constexpr size_t kPiece = 4 << 20;
  const ObjectInfo object{"b", 3 * kPiece, "1"};
  const auto read = [](uint64_t offset, uint64_t bytes, uint8_t* out) {
    std::memset(out, static_cast<int>(offset / kPiece), bytes);
    return Status::ok();
  };
  const std::string path = dir_.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // the file grows as fast as it is read
  std::string content;
  bool has_first = true;
  bool has_last = false;
  std::thread reader([&] {
    std::ifstream file(path, std::ios::binary);
    content.resize(kPiece + 1);  // the second piece has begun
    file.read(content.data(), static_cast<std::streamsize>(content.size()));
    has_first = std::filesystem::exists(path + ".pieces/0");
    has_last = std::filesystem::exists(path + ".pieces/2");
    content.append(std::istreambuf_iterator<char>(file), {});
  });
  EXPECT_TRUE(download(object, read, 2, path, [](uint64_t) {}).is_ok());
  reader.join();
  EXPECT_FALSE(has_first);
  EXPECT_TRUE(has_last);
  ASSERT_EQ(content.size(), object.bytes);
  for (size_t piece = 0; piece < 3; ++piece)
    EXPECT_EQ(content[piece * kPiece], static_cast<char>(piece));
}

}  // namespace
}  // namespace lockstep::source
